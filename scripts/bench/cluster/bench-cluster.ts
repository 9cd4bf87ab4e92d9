/**
 * `BenchCluster`: starts coordinators with a PostgreSQL and usually a NATS server of their own, and reads their processor time.
 *
 * One provider is connected to each coordinator. The provider of coordinator i serves only model `bench-i`.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Child, spawnChild } from '../../network/child.js';
import { freePorts } from '../../network/cluster/free-ports.js';
import type { InstalledPrograms } from '../../network/cluster/installed-programs.js';
import { postgresReady, preparePostgres } from '../../network/cluster/postgres-server.js';
import { ProcessGuard } from '../../network/cluster/process-guard.js';
import {
  COORDINATOR,
  listeningAddress,
  makeDataDirectory,
  readDevelopmentKeys,
  rejectAfter,
  rejectOnExit,
  spawnCoordinator,
} from '../../network/network.js';
import type { Target } from '../relay/http-connection.js';
import { Processes } from '../relay/sides.js';
import { cpuSeconds, familyCpuSeconds } from '../statistics.js';

export interface BenchClusterOptions {
  readonly programs: InstalledPrograms;
  /** Number of coordinators. 0 starts one coordinator without NATS. */
  readonly members: number;
  /** Connections of each coordinator's provider, with 1024 slots each. */
  readonly sessions?: number;
}

/** Processor time since the start of the processes, in seconds. */
export interface ClusterCpu {
  readonly coordinators: number;
  readonly nats: number;
  readonly postgres: number;
}

const READY_MS = 120_000;
const POLL_MS = 100;

export class BenchCluster {
  readonly #directory = mkdtempSync(join(tmpdir(), 'inference-bench-'));
  readonly #logDir = join(this.#directory, 'logs');
  readonly #processes = new Processes(this.#directory);
  readonly #guard = new ProcessGuard();
  readonly #coordinators: Child[] = [];
  readonly targets: Target[] = [];
  #nats: Child | null = null;
  #postgres: Child | null = null;
  #postgresDirectory = '';
  /** Empty without NATS. */
  natsUrl = '';

  /** Starts a cluster and waits until every coordinator lists every model. */
  static async start(options: BenchClusterOptions): Promise<BenchCluster> {
    const cluster = new BenchCluster();
    try {
      await cluster.#start(options);
      return cluster;
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  }

  /** Model of the provider of a coordinator. The index may be past the last coordinator, and then begins with the first again. */
  modelOf(index: number): string {
    return `bench-${index % this.targets.length}`;
  }

  get coordinatorPid(): number {
    return this.#coordinators[0]?.pid ?? Number.NaN;
  }

  get cpu(): ClusterCpu {
    return {
      coordinators: this.#coordinators.reduce((sum, { pid }) => sum + cpuSeconds(pid), 0),
      nats: this.#nats === null ? 0 : cpuSeconds(this.#nats.pid),
      postgres: this.#postgres === null ? Number.NaN : familyCpuSeconds(this.#postgres.pid),
    };
  }

  async stop(): Promise<void> {
    await this.#processes.stop();
    await Promise.all(this.#coordinators.map((child) => child.stop()));
    // SIGINT requests PostgreSQL's fast shutdown, which closes open connections.
    await Promise.all([this.#nats?.stop(), this.#postgres?.stop(10_000, 'SIGINT')]);
    await this.#guard.close();
    for (const path of [this.#directory, this.#postgresDirectory]) if (path !== '') rmSync(path, { recursive: true, force: true });
  }

  async #start({ programs, members, sessions = 1 }: BenchClusterOptions): Promise<void> {
    makeDataDirectory(this.#logDir);
    const count = Math.max(1, members);
    const [postgresPort, natsPort] = (await freePorts(2)) as [number, number];
    const databaseUrl = await this.#startPostgres(programs, postgresPort, count);
    if (members > 0) {
      const argv = ['-a', '127.0.0.1', '-p', String(natsPort)];
      this.#nats = await this.#guarded('nats', programs.natsServer, argv);
      this.natsUrl = `nats://127.0.0.1:${natsPort}`;
    }
    for (let index = 0; index < count; index++) await this.#startCoordinator(index, databaseUrl);
    const { apiKey } = readDevelopmentKeys(join(this.#directory, 'coordinator-0'));
    for (const [index, child] of this.#coordinators.entries()) {
      const { port } = new URL(await Promise.race([listeningAddress(child), rejectOnExit(child)]));
      this.targets.push({ port: Number(port), path: '/v1/chat/completions', headers: { authorization: `Bearer ${apiKey}` } });
      await this.#processes.start('instant-provider', [`ws://127.0.0.1:${port}`, 'agent', String(sessions), `bench-${index}`]);
    }
    await Promise.race([this.#untilListed(), rejectAfter(READY_MS, 'a model was not listed everywhere')]);
  }

  async #startPostgres(programs: InstalledPrograms, port: number, coordinatorCount: number): Promise<string> {
    const options = { programs, dataDir: this.#directory, logDir: this.#logDir, port, maxConnections: 20 + 16 * coordinatorCount };
    const { start, url, directory } = preparePostgres(options);
    this.#postgresDirectory = directory;
    const child = await start();
    this.#postgres = child;
    this.#guard.add(child.pid);
    await Promise.race([postgresReady(port, AbortSignal.timeout(READY_MS)), rejectOnExit(child)]);
    return url;
  }

  /** Must be called in order, because the first coordinator migrates the database. */
  async #startCoordinator(index: number, databaseUrl: string): Promise<void> {
    const name = `coordinator-${index}`;
    // The rate limiter runs, as in production, with a limit that is never reached.
    const env = { DATABASE_URL: databaseUrl, LOG_LEVEL: 'info', RATE_LIMIT_KEY: '1000000000' };
    const member = this.natsUrl === '' ? {} : { NATS_URL: this.natsUrl, COORDINATOR_ID: name };
    const dataDir = join(this.#directory, name);
    const { PROFILE: profiles } = process.env;
    const argv = profiles === undefined ? {} : { argv: ['--cpu-prof', `--cpu-prof-dir=${profiles}`, COORDINATOR] };
    const child = await spawnCoordinator({ name, port: 0, dataDir, logDir: this.#logDir, env: { ...env, ...member }, ...argv });
    this.#coordinators.push(child);
    await Promise.race([listeningAddress(child), rejectOnExit(child), rejectAfter(READY_MS, `${name} did not listen`)]);
  }

  async #guarded(name: string, program: string, argv: readonly string[]): Promise<Child> {
    const logFile = join(this.#logDir, `${name}.log`);
    const child = await spawnChild({ name, program, argv, env: process.env, logFile, detached: true });
    this.#guard.add(child.pid);
    return child;
  }

  async #untilListed(): Promise<void> {
    for (const { port, headers } of this.targets) {
      for (;;) {
        const response = await fetch(`http://127.0.0.1:${port}/v1/models`, { headers });
        const text = await response.text();
        if (this.targets.every((_, index) => text.includes(`"${this.modelOf(index)}"`))) break;
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      }
    }
  }
}
