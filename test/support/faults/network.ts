/** `startFaultNetwork`: coordinator process, agents (some behind fault-injecting proxies) and funded customers, for fault tests. */

import { type Customers, openCustomers } from '../customers.js';
import { type DemoNetwork, startDemoNetwork } from '../demo-network.js';
import { TcpProxy } from '../tcp-proxy.js';
import { type CoordinatorTimings, withTimings } from './timings.js';

export interface FaultNetwork {
  readonly network: DemoNetwork;
  readonly customers: Customers;
  /** Proxies of the proxied providers, in order. */
  readonly proxies: readonly TcpProxy[];
  coordinatorPid(): number;
  dispose(): Promise<void>;
}

export interface FaultNetworkOptions {
  /** Real agents; light agents can join any network. */
  readonly agents?: number;
  /** Number of agents that connect through their own proxy. */
  readonly proxied?: number;
  /** Default: the coordinator's own program and deadlines. */
  readonly timings?: CoordinatorTimings;
  readonly env?: Readonly<Record<string, string>>;
  readonly providerArgs?: readonly string[];
  readonly modelPath?: string;
}

export async function startFaultNetwork(options: FaultNetworkOptions = {}): Promise<FaultNetwork> {
  const { agents = 0, proxied = 0, timings, env, providerArgs, modelPath } = options;
  const proxies: TcpProxy[] = [];
  const program = timings === undefined ? null : await withTimings(timings);
  const { network, dispose } = await startDemoNetwork({
    providers: agents,
    coordinatorEnv: { LOG_LEVEL: 'info', ...program?.env, ...env },
    ...(program === null ? {} : { coordinatorArgv: program.argv }),
    ...(providerArgs === undefined ? {} : { providerArgs }),
    ...(modelPath === undefined ? {} : { modelPath }),
    route: async (provider, baseUrl) => {
      if (provider > proxied) return baseUrl;
      const proxy = await TcpProxy.start(baseUrl);
      proxies.push(proxy);
      return proxy.address;
    },
  });
  const customers = await openCustomers(network);
  return {
    network,
    customers,
    proxies,
    coordinatorPid: () => network.coordinator.current.pid,
    async dispose() {
      await customers.close();
      for (const proxy of proxies) proxy.resume();
      await dispose();
      await Promise.all(proxies.map((proxy) => proxy.close()));
    },
  };
}
