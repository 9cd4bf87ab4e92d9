/**
 * `startSoakCluster`: starts three coordinators that reach NATS and PostgreSQL through proxies, which faults can interrupt.
 *
 * Three real agents and nine light agents, which run no model, spread over the coordinators.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { openDatabase } from '../../../apps/coordinator/src/database/connection/open-database.js';
import type { Database } from '../../../apps/coordinator/src/database/tables.js';
import { type Customer, type Customers, openCustomers } from '../../../test/support/customers.js';
import type { LightAgent } from '../../../test/support/light/agent.js';
import { startLightAgents } from '../../../test/support/light/agents.js';
import { TcpProxy } from '../../../test/support/tcp-proxy.js';
import { type ClusterNetwork, type CoordinatorAddresses, startCluster } from '../../network/cluster/cluster-network.js';
import { waitUntilServed } from '../../network/network.js';
import type { Supervised } from '../../network/supervise.js';

export const LIGHT_MODEL = 'light';
export const LIGHT_SLOTS = 3;
const COORDINATORS = 3;
const LIGHT_AGENTS = 9;
const REAL_AGENTS = 3;
const CUSTOMERS = 3;
const POLL_MS = 100;
/** Time limit of each step of the start, for a machine that also runs other programs. */
const START_DEADLINE_MS = 150_000;

export interface Coordinator {
  readonly index: number;
  readonly url: string;
  readonly program: Supervised;
  /** Proxies of the connections to the NATS servers. */
  readonly nats: readonly TcpProxy[];
  readonly postgres: TcpProxy;
  /** Proxy through which the first light agent connects. */
  readonly agent: TcpProxy;
}

export interface SoakCluster {
  readonly network: ClusterNetwork;
  readonly dataDir: string;
  readonly coordinators: readonly Coordinator[];
  readonly lightAgents: readonly LightAgent[];
  /** Chooses the coordinator of a light agent's next connection. */
  setDestination(agent: LightAgent, coordinator: Coordinator): void;
  readonly realModel: string;
  readonly imageModel: string;
  /** Key: model id. */
  readonly providerCountByModel: Readonly<Record<string, number>>;
  readonly database: Database;
  readonly customers: Customers;
  readonly accounts: readonly Customer[];
  stop(): Promise<void>;
  removeFiles(): void;
}

interface Options {
  readonly signal: AbortSignal;
  /** Called if the cluster stops unexpectedly. */
  readonly onFailure: (reason: string) => void;
}

interface Proxies {
  readonly nats: readonly TcpProxy[];
  readonly postgres: TcpProxy;
}

const numberOfPort = (url: string): string => new URL(url).port;

/** Starts the cluster. If the start fails, stops all processes and rejects. */
export async function startSoakCluster({ signal, onFailure }: Options): Promise<SoakCluster> {
  const dataDir = mkdtempSync(join(tmpdir(), 'soak-cluster-'));
  const cleanups: (() => unknown)[] = [];
  const stop = async (): Promise<void> => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  };
  const removeFiles = (): void => rmSync(dataDir, { recursive: true, force: true });
  try {
    const proxies: Proxies[] = [];
    cleanups.push(() => Promise.all(proxies.flatMap(({ nats, postgres }) => [...nats, postgres]).map((proxy) => proxy.close())));
    const network = await startCluster({
      coordinatorCount: COORDINATORS,
      port: 0,
      dataDir,
      providers: REAL_AGENTS,
      providerArgs: ['--model', 'demo-text', '--model', 'demo-image'],
      // Longer than the load's streams. No rate limits, because all clients and agents share one network address.
      coordinatorEnv: { LOG_LEVEL: 'info', DRAIN_SECONDS: '15', RATE_LIMIT_ADDRESS: '0', RATE_LIMIT_KEY: '0' },
      startDeadlineMs: START_DEADLINE_MS,
      signal,
      onFailure,
      routeCoordinator: async (index, addresses) => {
        const routed = await throughProxies(addresses);
        proxies[index] = routed.proxies;
        return routed.addresses;
      },
    });
    cleanups.push(() => network.stop());
    const coordinators: Coordinator[] = [];
    for (const [index, { base_url: url }] of network.topology.coordinators.entries()) {
      const agent = await TcpProxy.start(url);
      cleanups.push(() => agent.close());
      coordinators.push({ index, url, program: network.coordinators[index] as Supervised, ...(proxies[index] as Proxies), agent });
    }
    const database = await openDatabase({ url: network.databaseUrl, maxConnections: 2, onConnectionLost: () => {} });
    cleanups.push(() => database.destroy());
    const { light, destinations } = await joinLightAgents(coordinators);
    cleanups.push(() => light.leave());
    const customers = await openCustomers({ ...network, dataDir });
    cleanups.push(() => customers.close());
    const accounts: Customer[] = [];
    for (let count = 0; count < CUSTOMERS; count++) accounts.push(await customers.customer());
    const realModel = network.models[0] ?? '';
    const imageModel = await waitForImageModel(network, signal);
    return {
      network,
      dataDir,
      coordinators,
      lightAgents: light.agents,
      setDestination: (agent, { index }) => {
        destinations[light.agents.indexOf(agent)] = index;
      },
      realModel,
      imageModel,
      providerCountByModel: { [LIGHT_MODEL]: LIGHT_AGENTS, [realModel]: REAL_AGENTS, [imageModel]: REAL_AGENTS },
      database,
      customers,
      accounts,
      stop,
      removeFiles,
    };
  } catch (error) {
    await stop();
    removeFiles();
    throw error;
  }
}

/** Polls, because image models load after text models. */
async function waitForImageModel({ baseUrl, apiKey }: ClusterNetwork, signal: AbortSignal): Promise<string> {
  for (;;) {
    const { imageModels } = await waitUntilServed(baseUrl, apiKey, REAL_AGENTS);
    if (imageModels[0] !== undefined) return imageModels[0];
    await delay(POLL_MS, undefined, { signal });
  }
}

/** Agents that start at the coordinators in turn, and move to the next coordinator when a connection ends. */
async function joinLightAgents(coordinators: readonly Coordinator[]) {
  /** Index of each agent's next coordinator. */
  const destinations = Array.from({ length: LIGHT_AGENTS }, (_, index) => index);
  const light = await startLightAgents({
    url: (index) => {
      const next = destinations[index] ?? 0;
      destinations[index] = next + 1;
      const { url, agent } = coordinators[next % coordinators.length] as Coordinator;
      return index === 0 ? agent.address : url;
    },
    size: LIGHT_AGENTS,
    models: () => [LIGHT_MODEL],
    slots: LIGHT_SLOTS,
    staysConnected: true,
  });
  return { light, destinations };
}

async function throughProxies({ NATS_URL, DATABASE_URL }: CoordinatorAddresses) {
  const start = (url: string): Promise<TcpProxy> => {
    const { hostname, port } = new URL(url);
    return TcpProxy.start(`http://${hostname}:${port}`, { isWebSocket: false });
  };
  const servers = NATS_URL.split(',');
  const nats = await Promise.all(servers.map(start));
  const postgres = await start(DATABASE_URL);
  const database = new URL(DATABASE_URL);
  database.port = numberOfPort(postgres.address);
  const addresses: CoordinatorAddresses = {
    NATS_URL: nats.map(({ address }) => `tls://127.0.0.1:${numberOfPort(address)}`).join(','),
    DATABASE_URL: database.toString(),
  };
  return { addresses, proxies: { nats, postgres } };
}
