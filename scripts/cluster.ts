/**
 * `npm run cluster -- N` starts a cluster on this machine: N coordinators behind a balancer, NATS, PostgreSQL and simulated agents.
 * Settings: PORT, DATA_DIR, PROVIDERS (number of agents), MODEL_PATH.
 *
 * `npm run cluster -- keys N DIR [--servers host:port,…]` writes keys and configuration for several machines.
 */
import { resolve } from 'node:path';
import { writeClusterFiles } from './network/cluster/cluster-keys.js';
import { type ClusterDemo, type ClusterNetwork, startCluster, type Topology } from './network/cluster/cluster-network.js';
import { type NatsAddress, parseServers } from './network/cluster/nats-config.js';
import { demoOf, writeDemoFile } from './network/demo-file.js';
import { DEMO_MODEL_ARGS, exitWith, launch } from './network/launch.js';
import { readSettings } from './network/settings.js';
import { StartError } from './network/start-error.js';
import { usageText } from './network/usage-text.js';

const MAX_LOCAL_COORDINATORS = 16;
/** Maximum number of coordinators that `keys` writes files for. They run on several machines. */
const MAX_KEYED_COORDINATORS = 200;
const DEFAULT_SERVERS = '127.0.0.1:4222';
const USAGE = `usage:
  npm run cluster -- COORDINATORS                                  a cluster on this machine (1 to ${MAX_LOCAL_COORDINATORS} coordinators)
  npm run cluster -- keys COORDINATORS DIR [--servers HOST:PORT,…]  keys and configuration for several machines`;

function readCount(text: string | undefined, max: number): number {
  const count = Number(text);
  if (text !== undefined && /^\d+$/.test(text) && count >= 1 && count <= max) return count;
  throw new StartError(
    text === undefined ? USAGE : `the number of coordinators must be a whole number from 1 to ${max}, not ${text}\n${USAGE}`,
  );
}

async function startAll(args: readonly string[]): Promise<number> {
  if (args.length > 1) throw new StartError(USAGE);
  const coordinatorCount = readCount(args[0], MAX_LOCAL_COORDINATORS);
  const { modelPath, ...settings } = readSettings(process.env, coordinatorCount);
  let readyNetwork: ClusterNetwork | null = null;
  // Addresses and process ids of the network, for examples and tests.
  const write = (network: ClusterNetwork, topology: Topology): void =>
    writeDemoFile<ClusterDemo>(settings.dataDir, { ...demoOf(network), ...topology });
  return launch({
    dataDir: settings.dataDir,
    start: (control) =>
      startCluster({
        ...settings,
        ...control,
        coordinatorCount,
        ...(modelPath === null ? { providerArgs: DEMO_MODEL_ARGS } : { modelPath }),
        hasSimulatedManagement: true,
        onChange: (topology) => readyNetwork !== null && write(readyNetwork, topology),
      }),
    onReady: (network) => {
      readyNetwork = network;
      write(network, network.topology);
      const agents = `${settings.providers} agent${settings.providers === 1 ? '' : 's'} serving ${network.models.join(', ')}`;
      const headline = `The network is up: ${coordinatorCount} coordinator(s) behind a balancer, ${agents}.`;
      const { coordinators } = network.topology;
      const list = coordinators.map(({ base_url: url, pid }, index) => `  coordinator-${index + 1}  ${url}  process ${pid}\n`).join('');
      console.log(usageText(network, settings.dataDir, headline, `\nEach coordinator by itself, past the balancer:\n\n${list}`));
    },
  });
}

async function makeKeys(args: readonly string[]): Promise<number> {
  const rest = [...args];
  const flag = rest.findIndex((arg) => arg === '--servers' || arg.startsWith('--servers='));
  let servers = DEFAULT_SERVERS;
  if (flag !== -1) {
    const [name = '', value] = rest.splice(flag, rest[flag] === '--servers' ? 2 : 1);
    servers = value ?? name.split('=')[1] ?? '';
  }
  const [count, directory] = rest;
  if (rest.length !== 2 || directory === undefined) throw new StartError(USAGE);
  const addresses: readonly NatsAddress[] = parseServers(servers);
  const files = await writeClusterFiles(resolve(directory), readCount(count, MAX_KEYED_COORDINATORS), addresses);
  console.log(`${files.natsConfigs.map((config, index) => `NATS server ${addresses[index]?.host}: nats-server -c ${config}`).join('\n')}
${files.coordinators.map(({ id, envFile }) => `${id}: settings in ${envFile}; add DATABASE_URL`).join('\n')}

Keep ca.key offline: with it, anybody can add a NATS server. docs/cluster.md says which file each machine needs.`);
  return 0;
}

function main([command, ...rest]: readonly string[]): Promise<number> {
  if (command === 'keys') return makeKeys(rest);
  return startAll(command === undefined ? rest : [command, ...rest]);
}

exitWith(Promise.resolve(process.argv.slice(2)).then(main));
