/** `startNetwork`: runs a coordinator and agents with simulated enclaves as processes on this machine. For `npm start` and tests. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Child, spawnChild } from './child.js';
import { makeDirectory } from './directory.js';
import { StartError } from './start-error.js';
import { type Supervised, supervise } from './supervise.js';

export interface NetworkOptions {
  /** Port of the coordinator; 0 lets the system choose. */
  readonly port: number;
  readonly dataDir: string;
  /** Number of agents to start. With 0, only agents started elsewhere connect. */
  readonly providers: number;
  /** GGUF file to serve instead of the demo model. */
  readonly modelPath?: string;
  readonly coordinatorEnv?: Readonly<Record<string, string>>;
  /** Further arguments of `inference-provider serve`. */
  readonly providerArgs?: readonly string[];
  /** Node.js arguments and script, in place of the built coordinator. */
  readonly coordinatorArgv?: readonly string[];
  /** Returns the address at which an agent (counted from 1) reaches the coordinator, such as a proxy. */
  readonly route?: (provider: number, baseUrl: string) => Promise<string>;
  /** Adds a simulated management server, so that simulated Macs can reach trust level `hardware`. */
  readonly hasSimulatedManagement?: boolean;
  /** Milliseconds that each step of the start may take. Default: 110 s, for busy machines. */
  readonly startDeadlineMs?: number;
  /** Cancels the start: stops all processes and rejects. */
  readonly signal?: AbortSignal;
  /** Called with a line for the user before a process is restarted. */
  readonly onNotice?: (text: string) => void;
  /** Called when a process cannot be kept running, after all agents and the coordinator were stopped. */
  readonly onFailure?: (reason: string) => void;
}

export interface Network {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly adminKey: string;
  /** Model ids: text models first, then vision models. */
  readonly models: readonly string[];
  readonly imageModels: readonly string[];
  readonly visionModels: readonly string[];
  readonly coordinator: Supervised;
  readonly providers: readonly Supervised[];
  /** Address of the simulated management server; null without device management. */
  readonly managementUrl: string | null;
  readonly logDir: string;
  stop(): Promise<void>;
}

export const ROOT = resolve(fileURLToPath(new URL('../..', import.meta.url)));
export const COORDINATOR = join(ROOT, 'apps/coordinator/dist/main.js');
const PROVIDER = join(ROOT, 'apps/provider/dist/main.js');
const DEVICE_SIMULATION = join(ROOT, 'packages/device-simulation/dist/main.js');
const POLL_MS = 100;
/** Time for a busy machine to load a program and its models. */
const START_DEADLINE_MS = 110_000;

/** A running process, and a function that starts the program again after a crash. */
export interface Program {
  readonly child: Child;
  readonly start: () => Promise<Child>;
}

/** Starts a network and waits until some model is served by every agent. If the start fails, stops all processes and rejects. */
export async function startNetwork(options: NetworkOptions): Promise<Network> {
  const logDir = join(options.dataDir, 'logs');
  makeDataDirectory(logDir);
  const programs: Program[] = [];
  const waitFor = waiter(options);
  let simulation: Simulation | null = null;
  try {
    if (options.hasSimulatedManagement === true) {
      simulation = await startSimulation(options.dataDir, logDir);
      await waitFor(simulation.ready, [simulation.child], 'the device simulation did not start');
    }
    const management = await simulation?.ready;
    const coordinatorEnv = { ...management?.coordinator_env, ...options.coordinatorEnv };
    const coordinator = await startCoordinator({ ...options, coordinatorEnv }, logDir);
    programs.push(coordinator);
    const baseUrl = await waitFor(coordinator.listening, [coordinator.child], 'the coordinator did not listen');
    await simulation?.child.ask({ coordinator: baseUrl });
    const keys = readDevelopmentKeys(options.dataDir);
    const managementArgs = management === undefined ? [] : ['--simulated-management', management.management_url];
    const providerArgs = [...managementArgs, ...(options.providerArgs ?? [])];
    for (let number = 1; number <= options.providers; number++) {
      const address = (await options.route?.(number, baseUrl)) ?? baseUrl;
      programs.push(await startProvider({ ...options, providerArgs }, number, address, logDir));
    }
    const agents = programs.slice(1).map((program) => program.child);
    const models =
      agents.length === 0
        ? { models: [], imageModels: [], visionModels: [] }
        : await waitFor(waitUntilServed(baseUrl, keys.apiKey, agents.length), agents, 'no model was served by every agent');
    const [supervisedCoordinator, ...providers] = superviseAll(programs, options);
    if (supervisedCoordinator === undefined) throw new StartError('there is no coordinator');
    const stop = async (): Promise<void> => {
      await stopInOrder([supervisedCoordinator, ...providers]);
      await simulation?.child.stop();
    };
    const managementUrl = management?.management_url ?? null;
    return { baseUrl, ...keys, ...models, coordinator: supervisedCoordinator, providers, managementUrl, logDir, stop };
  } catch (error) {
    await stopInOrder(programs.map((program) => program.child));
    await simulation?.child.stop();
    throw error;
  }
}

type WaitFor = <Value>(ready: Promise<Value>, children: readonly Child[], failure: string) => Promise<Value>;

/** Returns a function that waits for a step of the start. Rejects if a child exits, the deadline passes or the start is cancelled. */
function waiter({ startDeadlineMs = START_DEADLINE_MS, signal }: NetworkOptions): WaitFor {
  const cancelled = rejectOnAbort(signal);
  // If the signal aborts before the first wait, the rejection must not count as unhandled.
  cancelled.catch(() => {});
  return (ready, children, failure) =>
    Promise.race([ready, ...children.map(rejectOnExit), rejectAfter(startDeadlineMs, failure), cancelled]);
}

export interface CoordinatorAlone {
  readonly child: Child;
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly adminKey: string;
}

/**
 * Starts a coordinator without agents, for tests and benches with scripted providers. Throws {@link StartError}.
 *
 * @param argv Node.js arguments and script, in place of the built coordinator.
 */
export async function startCoordinatorAlone(
  dataDir: string,
  coordinatorEnv: Readonly<Record<string, string>> = {},
  argv: readonly string[] = [COORDINATOR],
): Promise<CoordinatorAlone> {
  const logDir = join(dataDir, 'logs');
  makeDataDirectory(logDir);
  const { child, listening } = await startCoordinator({ port: 0, dataDir, providers: 0, coordinatorEnv, coordinatorArgv: argv }, logDir);
  try {
    const baseUrl = await Promise.race([listening, rejectOnExit(child), rejectAfter(START_DEADLINE_MS, 'the coordinator did not listen')]);
    return { child, baseUrl, ...readDevelopmentKeys(dataDir) };
  } catch (error) {
    await child.stop();
    throw error;
  }
}

/** Stops the agents before the coordinator, so that running jobs can finish. */
async function stopInOrder([coordinator, ...providers]: readonly { stop(): Promise<void> }[]): Promise<void> {
  await Promise.all(providers.map((provider) => provider.stop()));
  await coordinator?.stop();
}

function superviseAll(programs: readonly Program[], options: NetworkOptions): Supervised[] {
  const supervised: Supervised[] = programs.map(({ child, start }) =>
    supervise(child, {
      start,
      onRestart: (ended) => options.onNotice?.(`the ${ended.name} ended (${ended.exitReason()}); starting it again`),
      onFailed: (ended) => {
        void stopInOrder(supervised).then(() => options.onFailure?.(`the ${ended.name} ended again and again: ${ended.exitReason()}`));
      },
    }),
  );
  return supervised;
}

async function startCoordinator(options: NetworkOptions, logDir: string): Promise<Program & { readonly listening: Promise<string> }> {
  // A restart reuses the first port, because agents and clients know the address.
  let port = options.port;
  const { dataDir, coordinatorEnv, coordinatorArgv } = options;
  const start = (): Promise<Child> =>
    spawnCoordinator({
      name: 'coordinator',
      port,
      dataDir,
      logDir,
      ...(coordinatorEnv === undefined ? {} : { env: coordinatorEnv }),
      ...(coordinatorArgv === undefined ? {} : { argv: coordinatorArgv }),
    });
  const child = await start();
  const listening = listeningAddress(child).then((address) => {
    port = Number(new URL(address).port);
    return address;
  });
  return { child, start, listening };
}

interface CoordinatorOptions {
  readonly name: string;
  readonly port: number;
  readonly dataDir: string;
  readonly logDir: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Node.js arguments and script, in place of the built coordinator. */
  readonly argv?: readonly string[];
}

/** Starts a coordinator process in development mode. Resolves before the process listens. */
export function spawnCoordinator({ name, port, dataDir, logDir, env, argv = [COORDINATOR] }: CoordinatorOptions): Promise<Child> {
  return spawnChild({
    name,
    argv,
    env: {
      ...process.env,
      HOST: '127.0.0.1',
      PORT: String(port),
      DATA_DIR: dataDir,
      DEVELOPMENT: '1',
      ALLOW_SIMULATED_ENCLAVE: '1',
      DRAIN_SECONDS: '4',
      ...env,
    },
    logFile: join(logDir, `${name}.log`),
  });
}

/** Resolves to the coordinator's address once the process listens; never settles if the process exits first. */
export async function listeningAddress(child: Child): Promise<string> {
  return (await child.message).address as string;
}

/** Process that simulates Apple's certificate authority and a device management server (packages/device-simulation). */
export interface Simulation {
  readonly child: Child;
  readonly ready: Promise<SimulationReady>;
}

/** First IPC message of the device simulation. The settings `coordinator_env` make a coordinator trust the simulation. */
interface SimulationReady {
  readonly coordinator_env: Readonly<Record<string, string>>;
  readonly management_url: string;
}

export async function startSimulation(dataDir: string, logDir: string): Promise<Simulation> {
  const child = await spawnChild({
    name: 'device-simulation',
    argv: [DEVICE_SIMULATION],
    env: { ...process.env, PORT: '0', DATA_DIR: join(dataDir, 'device-simulation') },
    logFile: join(logDir, 'device-simulation.log'),
  });
  return { child, ready: child.message as Promise<unknown> as Promise<SimulationReady> };
}

export async function startProvider(
  options: Pick<NetworkOptions, 'dataDir' | 'modelPath' | 'providerArgs'>,
  number: number,
  baseUrl: string,
  logDir: string,
): Promise<Program> {
  const name = `provider-${number}`;
  const start = (): Promise<Child> =>
    spawnChild({
      name,
      argv: [
        PROVIDER,
        'serve',
        ...['--coordinator', baseUrl],
        ...['--data-dir', join(options.dataDir, name)],
        '--simulated-enclave',
        ...['--drain', '4'],
        // A simulated host, so that this machine's heat and battery do not pause the agent.
        ...(options.providerArgs?.includes('--simulated-host') ? [] : ['--simulated-host', join(options.dataDir, name, 'simulated-host')]),
        ...(options.modelPath === undefined ? [] : ['--model', options.modelPath]),
        ...(options.providerArgs ?? []),
      ],
      env: process.env,
      logFile: join(logDir, `${name}.log`),
    });
  return { child: await start(), start };
}

/** Polls without a time limit until some model has `providers` providers or more. Resolves to the ids of all such models. */
export async function waitUntilServed(
  baseUrl: string,
  apiKey: string,
  providers: number,
): Promise<Pick<Network, 'models' | 'imageModels' | 'visionModels'>> {
  for (;;) {
    const served = (await listModels(baseUrl, apiKey)).filter((model) => model.providers >= providers);
    if (served.length > 0) {
      const vision = served.filter(({ readsImages }) => readsImages);
      const text = served.filter(({ type, readsImages }) => type === 'text' && !readsImages);
      const others = served.filter(({ type }) => type !== 'text');
      const ids = (models: typeof served): string[] => models.map(({ id }) => id);
      const imageModels = ids(served.filter(({ type }) => type === 'image'));
      return { models: ids([...text, ...vision, ...others]), imageModels, visionModels: ids(vision) };
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

interface ListedModel {
  readonly id: string;
  readonly type: string;
  readonly providers: number;
  readonly readsImages: boolean;
}

async function listModels(baseUrl: string, apiKey: string): Promise<ListedModel[]> {
  const response = await fetch(`${baseUrl}/v1/models`, { headers: { authorization: `Bearer ${apiKey}` } });
  if (!response.ok) throw new StartError(`the coordinator rejected the development key with status ${response.status}`);
  const list = (await response.json()) as {
    data: {
      id: string;
      architecture: { input_modalities: string[] };
      metadata: { model_type: string; provider_count: number };
    }[];
  };
  return list.data.map(({ id, architecture, metadata }) => ({
    id,
    type: metadata.model_type,
    providers: metadata.provider_count,
    readsImages: architecture.input_modalities.includes('image'),
  }));
}

export async function rejectOnExit(child: Child): Promise<never> {
  await child.exited;
  throw new StartError(`the ${child.name} did not start: ${child.exitReason()}`);
}

/** Rejects when the signal aborts; never settles otherwise. */
export function rejectOnAbort(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    const stop = (): void => reject(new StartError('the start was interrupted'));
    if (signal?.aborted) stop();
    else signal?.addEventListener('abort', stop, { once: true });
  });
}

/** Rejects after a time. `failure` is a clause such as "the coordinator did not listen". */
export function rejectAfter(ms: number, failure: string): Promise<never> {
  return new Promise((_, reject) => {
    setTimeout(() => reject(new StartError(`${failure} within ${Math.round(ms / 1000)} s`)), ms).unref();
  });
}

/** Creates a directory with mode 0700. Throws {@link StartError}. */
export function makeDataDirectory(path: string): void {
  try {
    makeDirectory(path);
  } catch (error) {
    throw new StartError(`the data directory cannot be used: ${(error as Error).message}`);
  }
}

/** Keys that a coordinator in development mode writes into its data directory. Throws if they are missing. */
export function readDevelopmentKeys(dataDir: string): { apiKey: string; adminKey: string } {
  const keys = JSON.parse(readFileSync(join(dataDir, 'coordinator', 'development-keys.json'), 'utf8')) as Record<string, string>;
  const { api_key: apiKey, admin_key: adminKey } = keys;
  if (apiKey === undefined || adminKey === undefined) throw new StartError('the coordinator wrote no development keys');
  return { apiKey, adminKey };
}
