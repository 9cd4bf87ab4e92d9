/** `startCluster`: runs NATS servers, PostgreSQL, coordinators behind a balancer, and simulated agents on this machine. */
import { join } from 'node:path';
import { type Child, spawnChild } from '../child.js';
import type { Demo, RunningNetwork } from '../demo-file.js';
import type { StartControl } from '../launch.js';
import {
  listeningAddress,
  makeDataDirectory,
  type Program,
  readDevelopmentKeys,
  rejectAfter,
  rejectOnAbort,
  rejectOnExit,
  type Simulation,
  spawnCoordinator,
  startProvider,
  startSimulation,
  waitUntilServed,
} from '../network.js';
import { StartError } from '../start-error.js';
import { type Supervised, supervise } from '../supervise.js';
import { Balancer, type Listener } from './balancer.js';
import { type CoordinatorFiles, writeClusterFiles } from './cluster-keys.js';
import { freePorts } from './free-ports.js';
import { findPrograms } from './installed-programs.js';
import { type PostgresServer, postgresReady, preparePostgres } from './postgres-server.js';
import { ProcessGuard } from './process-guard.js';

export interface ClusterOptions extends Partial<StartControl> {
  readonly coordinatorCount: number;
  /** Port of the balancer; 0 lets the system choose. */
  readonly port: number;
  readonly dataDir: string;
  readonly providers: number;
  /** GGUF file that the agents serve. Default: the models in `providerArgs`. */
  readonly modelPath?: string;
  readonly providerArgs?: readonly string[];
  readonly coordinatorEnv?: Readonly<Record<string, string>>;
  /** Adds a simulated management server, so that simulated Macs can reach trust level `hardware`. */
  readonly hasSimulatedManagement?: boolean;
  /** Replaces the NATS and database addresses of a coordinator, for example by proxies in failure tests. */
  readonly routeCoordinator?: (index: number, addresses: CoordinatorAddresses) => Promise<CoordinatorAddresses>;
  /** Milliseconds that each step of the start may take. Default: 110 s, for busy machines. */
  readonly startDeadlineMs?: number;
  /** Called after a process restarted, or an agent connected or disconnected. */
  readonly onChange?: (topology: Topology) => void;
}

/** Settings of a coordinator with addresses of other servers. */
export interface CoordinatorAddresses {
  readonly NATS_URL: string;
  readonly DATABASE_URL: string;
}

/** Processes of a cluster, as written to `demo.json`. */
export interface Topology {
  readonly coordinators: readonly { readonly base_url: string; readonly pid: number }[];
  /** `coordinator` is the `base_url` of the connected coordinator, or null. */
  readonly agents: readonly { readonly pid: number; readonly coordinator: string | null }[];
  readonly nats: readonly { readonly pid: number }[];
}

export type ClusterDemo = Demo & Topology;

export interface ClusterNetwork extends RunningNetwork {
  readonly topology: Topology;
  readonly coordinators: readonly Supervised[];
  readonly agents: readonly Supervised[];
  readonly nats: readonly Supervised[];
  readonly postgres: Supervised;
  readonly databaseUrl: string;
  stop(): Promise<void>;
}

const NATS_SERVER_COUNT = 3;
/** Database connections for one coordinator: pool (10), migrations and locks. */
const CONNECTIONS_PER_COORDINATOR = 16;
const START_DEADLINE_MS = 110_000;
const NATS_GRACE_MS = 3_000;
const POSTGRES_GRACE_MS = 10_000;

/** Starts a cluster and waits until some model is served by every agent. If the start fails, stops all processes and rejects. */
export async function startCluster(options: ClusterOptions): Promise<ClusterNetwork> {
  const processes = new ClusterProcesses(options);
  try {
    return await processes.start();
  } catch (error) {
    await processes.stop();
    throw error;
  }
}

type Role = 'nats' | 'postgres' | 'coordinator' | 'agent';

/** Processes of a cluster, from the first start to the last stop. */
class ClusterProcesses {
  readonly #options: ClusterOptions;
  readonly #logDir: string;
  readonly #guard = new ProcessGuard();
  readonly #programs: Record<Role, Supervised[]> = { nats: [], postgres: [], coordinator: [], agent: [] };
  readonly #failed = new AbortController();
  #balancer: Balancer | null = null;
  /** Listeners of the balancer for agents, in the order of the agents. */
  #agentListeners: Listener[] = [];
  #simulation: Simulation | null = null;
  #stopped: Promise<void> | null = null;
  #isUp = false;

  constructor(options: ClusterOptions) {
    this.#options = options;
    this.#logDir = join(options.dataDir, 'logs');
  }

  async start(): Promise<ClusterNetwork> {
    const { dataDir, coordinatorCount, port } = this.#options;
    const installed = findPrograms();
    makeDataDirectory(this.#logDir);
    const ports = await freePorts(2 * NATS_SERVER_COUNT + 1 + coordinatorCount);
    const nextPort = (): number => ports.pop() as number;
    const backends = Array.from({ length: coordinatorCount }, (_, index) => ({ name: `coordinator-${index + 1}`, port: nextPort() }));
    const balancer = new Balancer(backends, () => this.#changed());
    this.#balancer = balancer;
    const clientListener = await balancer.listenForClients(port).catch((error: NodeJS.ErrnoException) => {
      throw new StartError(
        `the balancer cannot listen on 127.0.0.1:${port}: ${error.code === 'EADDRINUSE' ? 'the port is taken' : error.message}`,
      );
    });
    const baseUrl = `http://127.0.0.1:${clientListener.port}`;
    const servers = Array.from({ length: NATS_SERVER_COUNT }, () => {
      return { host: '127.0.0.1', port: nextPort(), clusterPort: nextPort(), monitorPort: null };
    });
    const files = await writeClusterFiles(join(dataDir, 'cluster'), coordinatorCount, servers);
    const postgresPort = nextPort();
    const maxConnections = 20 + CONNECTIONS_PER_COORDINATOR * coordinatorCount;
    const postgres = preparePostgres({ programs: installed, dataDir, logDir: this.#logDir, port: postgresPort, maxConnections });
    for (const [index, config] of files.natsConfigs.entries()) await this.#startNats(installed.natsServer, config, index + 1);
    await this.#startPostgres(postgres, postgresPort);
    const managementArgs = await this.#startManagement(baseUrl);
    await this.#startCoordinators(backends, files.coordinators, postgres.url);
    const keys = readDevelopmentKeys(join(dataDir, 'coordinator-1'));
    await this.#startAgents(managementArgs);
    const first = `http://127.0.0.1:${backends[0]?.port}`;
    const models = await this.#waitFor(waitUntilServed(first, keys.apiKey, this.#options.providers), 'no model was served by every agent');
    this.#isUp = true;
    const { coordinator, agent, nats } = this.#programs;
    const topology = (): Topology => this.#readTopology();
    return {
      baseUrl,
      ...keys,
      ...models,
      logDir: this.#logDir,
      databaseUrl: postgres.url,
      get topology() {
        return topology();
      },
      coordinators: coordinator,
      agents: agent,
      nats,
      postgres: this.#programs.postgres[0] as Supervised,
      stop: () => this.stop(),
    };
  }

  /** Stops agents first, so that jobs can finish; then coordinators, balancer, and last NATS, PostgreSQL and the simulation. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    const { nats, postgres, coordinator, agent } = this.#programs;
    const all = (programs: readonly Supervised[]): Promise<unknown> => Promise.all(programs.map((program) => program.stop()));
    await all(agent);
    await all(coordinator);
    await this.#balancer?.close();
    await Promise.all([all(nats), all(postgres), this.#simulation?.child.stop()]);
    await this.#guard.close();
  }

  async #startNats(natsServer: string, config: string, number: number): Promise<void> {
    const start = (): Promise<Child> =>
      spawnChild({
        name: `nats-${number}`,
        program: natsServer,
        argv: ['-c', config],
        env: process.env,
        logFile: join(this.#logDir, `nats-${number}.log`),
        detached: true,
      });
    await this.#add('nats', start, (child) => child.stop(NATS_GRACE_MS));
  }

  async #startPostgres(postgres: PostgresServer, port: number): Promise<void> {
    // SIGINT requests a fast shutdown, which closes open connections.
    await this.#add('postgres', postgres.start, (child) => child.stop(POSTGRES_GRACE_MS, 'SIGINT'));
    await this.#waitFor(postgresReady(port, this.#failed.signal), 'PostgreSQL did not accept connections');
  }

  async #startManagement(baseUrl: string): Promise<readonly string[]> {
    if (this.#options.hasSimulatedManagement !== true) return [];
    this.#simulation = await startSimulation(this.#options.dataDir, this.#logDir);
    const { management_url: url } = await this.#waitFor(this.#simulation.ready, 'the device simulation did not start');
    await this.#simulation.child.ask({ coordinator: baseUrl });
    return ['--simulated-management', url];
  }

  /** Starts the coordinators one after the other: the first migrates the database. */
  async #startCoordinators(
    backends: readonly { readonly name: string; readonly port: number }[],
    files: readonly CoordinatorFiles[],
    databaseUrl: string,
  ): Promise<void> {
    const management = await this.#simulation?.ready;
    const startOne = async (index: number): Promise<void> => {
      const { name, port } = backends[index] as (typeof backends)[number];
      const direct: CoordinatorAddresses = { NATS_URL: files[index]?.env.NATS_URL ?? '', DATABASE_URL: databaseUrl };
      const addresses = (await this.#options.routeCoordinator?.(index, direct)) ?? direct;
      const start = (): Promise<Child> =>
        spawnCoordinator({
          name,
          port,
          dataDir: join(this.#options.dataDir, name),
          logDir: this.#logDir,
          env: { ...management?.coordinator_env, ...this.#options.coordinatorEnv, ...files[index]?.env, ...addresses },
        });
      const child = await this.#add('coordinator', start);
      await this.#waitFor(listeningAddress(child), `${name} did not listen`);
    };
    // In order, so that the indexes of programs and backends correspond.
    for (let index = 0; index < backends.length; index++) await startOne(index);
  }

  async #startAgents(managementArgs: readonly string[]): Promise<void> {
    const { dataDir, modelPath, providers, coordinatorCount, providerArgs = [] } = this.#options;
    const balancer = this.#balancer as Balancer;
    for (let number = 1; number <= providers; number++) {
      const listener = await balancer.listenForAgent((number - 1) % coordinatorCount);
      this.#agentListeners.push(listener);
      const agent = await startProvider(
        { dataDir, providerArgs: [...managementArgs, ...providerArgs], ...(modelPath === undefined ? {} : { modelPath }) },
        number,
        `http://127.0.0.1:${listener.port}`,
        this.#logDir,
      );
      this.#supervise('agent', agent);
    }
  }

  async #add(role: Role, start: () => Promise<Child>, stop?: (child: Child) => Promise<void>): Promise<Child> {
    const program = { start: () => this.#startGuarded(role, start), child: await this.#startGuarded(role, start) };
    this.#supervise(role, program, stop);
    return program.child;
  }

  /** Starts a process. The guard stops NATS and PostgreSQL if this process dies; coordinators and agents exit when their IPC channel closes. */
  async #startGuarded(role: Role, start: () => Promise<Child>): Promise<Child> {
    const child = await start();
    if (role === 'nats' || role === 'postgres') {
      this.#guard.add(child.pid);
      void child.exited.then(() => this.#guard.remove(child.pid));
    }
    return child;
  }

  #supervise(role: Role, { child, start }: Program, stop?: (child: Child) => Promise<void>): void {
    const program = supervise(child, {
      start,
      ...(stop === undefined ? {} : { stop }),
      onRestart: (ended) => {
        // During the start, any exit is a failure.
        if (!this.#isUp) this.#failed.abort(new StartError(`the ${ended.name} did not start: ${ended.exitReason()}`));
        else this.#options.onNotice?.(`the ${ended.name} ended (${ended.exitReason()}); starting it again`);
      },
      onRestarted: () => this.#changed(),
      onFailed: (ended) => {
        void this.stop().then(() => this.#options.onFailure?.(`the ${ended.name} ended again and again: ${ended.exitReason()}`));
      },
    });
    this.#programs[role].push(program);
  }

  /**
   * Waits for a step of the start. Rejects if a process exits, the deadline passes or the start is interrupted.
   *
   * @param failure Message for a passed deadline, such as "the coordinator did not listen".
   */
  async #waitFor<T>(ready: Promise<T>, failure: string): Promise<T> {
    this.#failed.signal.throwIfAborted();
    const failed = new Promise<never>((_, reject) => {
      this.#failed.signal.addEventListener('abort', () => reject(this.#failed.signal.reason), { once: true });
    });
    const simulationEnded = this.#simulation === null ? [] : [rejectOnExit(this.#simulation.child)];
    const limit = rejectAfter(this.#options.startDeadlineMs ?? START_DEADLINE_MS, failure);
    return Promise.race([ready, failed, limit, rejectOnAbort(this.#options.signal), ...simulationEnded]);
  }

  #readTopology(): Topology {
    const { coordinator, agent, nats } = this.#programs;
    const backends = this.#balancer?.backends ?? [];
    const urlOf = (port: number): string => `http://127.0.0.1:${port}`;
    return {
      coordinators: coordinator.map(({ current }, index) => ({ base_url: urlOf(backends[index]?.port ?? 0), pid: current.pid })),
      agents: agent.map(({ current }, index) => {
        const backend = this.#agentListeners[index]?.backend ?? null;
        return { pid: current.pid, coordinator: backend === null ? null : urlOf(backend.port) };
      }),
      nats: nats.map(({ current }) => ({ pid: current.pid })),
    };
  }

  #changed(): void {
    if (this.#isUp && this.#stopped === null) this.#options.onChange?.(this.#readTopology());
  }
}
