/** `FaultDraw`: faults of a local cluster in random order. Each fault knows which failures of requests docs/cluster.md permits. */
import { setTimeout as delay } from 'node:timers/promises';
import type { LightAgent } from '../../../test/support/light/agent.js';
import type { TcpProxy } from '../../../test/support/tcp-proxy.js';
import type { Outcome } from './load.js';
import type { Coordinator, SoakCluster } from './soak-cluster.js';

export interface Fault {
  readonly name: string;
  /** Coordinator that fails or loses its connections. Null if the fault concerns no single coordinator. */
  readonly victim: Coordinator | null;
  /** Whether the victim's process is suspended. Agents with an open connection to it then count as away. */
  readonly freezes: boolean;
  /** Maximum time in milliseconds that a provider may be without a connection. With 0, no provider may leave. */
  readonly maxAwayMs: number;
  /** Set if PostgreSQL does not answer during the fault, so that jobs are charged later. */
  readonly delaysSettlements?: true;
  readonly permits: (outcome: Outcome) => boolean;
  /** Causes the fault and resolves at its end. On abort, ends the fault at once. */
  readonly inject: (signal: AbortSignal) => Promise<void>;
}

/** Time for agents of a stopped coordinator to join another coordinator. */
const AWAY_MS = 5_000;
/** Errors after the loss of a provider, or of the connection to its coordinator. Without a status: within a stream. */
const PROVIDER_LOST = new Set(['provider_failed', '502 provider_failed', 'provider_timeout', '504 provider_timeout']);
/** Errors of a coordinator that reaches no provider. Without a status: within a stream. */
const NO_PROVIDER = new Set(['503 no_provider', '404 model_not_found', 'no_provider']);

export class FaultDraw {
  readonly #cluster: SoakCluster;
  readonly #random: () => number;
  #pending: (() => Fault)[] = [];

  constructor(cluster: SoakCluster, random: () => number) {
    this.#cluster = cluster;
    this.#random = random;
  }

  /** Next fault. Each round has every kind once, in a new random order. */
  next(): Fault {
    if (this.#pending.length === 0) this.#pending = this.#shuffled(this.#kinds());
    const create = this.#pending.pop();
    if (create === undefined) throw new Error('there are no faults');
    return create();
  }

  #kinds(): (() => Fault)[] {
    return [
      () => this.#coordinatorKilled(),
      () => this.#coordinatorFrozen(),
      () => this.#coordinatorRestarted(),
      () => this.#natsServerKilled(),
      () => this.#stopAllNats(),
      () => this.#cutFromNats(),
      () => this.#cutFromPostgres(),
      () => this.#postgresRestarted(),
      () => this.#agentMoves(),
      () => this.#agentFallsSilent(),
    ];
  }

  #coordinatorKilled(): Fault {
    const victim = this.#pick(this.#cluster.coordinators);
    return {
      name: 'coordinator killed',
      victim,
      freezes: false,
      maxAwayMs: AWAY_MS,
      permits: (outcome) => hasLostCoordinator(outcome, victim),
      inject: async () => victim.program.current.kill('SIGKILL'),
    };
  }

  #coordinatorFrozen(): Fault {
    const victim = this.#pick(this.#cluster.coordinators);
    const ms = this.#randomBetween(5_000, 10_000);
    return {
      name: 'coordinator frozen',
      victim,
      freezes: true,
      maxAwayMs: AWAY_MS,
      // PostgreSQL aborts idle transactions of the frozen coordinator, so their requests fail.
      permits: (outcome) => hasLostCoordinator(outcome, victim) || (isThroughVictim(outcome, victim) && isWithoutBilling(outcome)),
      inject: async (signal) => {
        const frozen = victim.program.current;
        frozen.kill('SIGSTOP');
        await pause(ms, signal);
        frozen.kill('SIGCONT');
      },
    };
  }

  #coordinatorRestarted(): Fault {
    const victim = this.#pick(this.#cluster.coordinators);
    return {
      name: 'coordinator restarted (SIGTERM)',
      victim,
      freezes: false,
      maxAwayMs: AWAY_MS,
      // Clients that use only this coordinator cannot connect during its restart.
      permits: ({ coordinator, kind, detail }) =>
        coordinator === victim.index && (kind === 'cut' || (kind === 'refused' && /^(503|404) /.test(detail))),
      inject: async () => {
        const ended = victim.program.current;
        ended.kill('SIGTERM');
        await ended.exited;
      },
    };
  }

  #natsServerKilled(): Fault {
    const server = this.#pick(this.#cluster.network.nats);
    return {
      name: 'one NATS server killed',
      victim: null,
      freezes: false,
      maxAwayMs: 0,
      permits: () => false,
      inject: async () => server.current.kill('SIGKILL'),
    };
  }

  #stopAllNats(): Fault {
    const { coordinators, network } = this.#cluster;
    const ms = this.#randomBetween(2_000, 14_000);
    return {
      name: 'all NATS servers away',
      victim: null,
      freezes: false,
      maxAwayMs: 0,
      permits: isIsolated,
      inject: async (signal) => {
        for (const server of network.nats) server.current.kill('SIGKILL');
        await interrupt(
          coordinators.flatMap(({ nats }) => nats),
          ms,
          true,
          signal,
        );
      },
    };
  }

  #cutFromNats(): Fault {
    const victim = this.#pick(this.#cluster.coordinators);
    const ms = this.#randomBetween(2_000, 14_000);
    const isReset = this.#random() < 0.5;
    return {
      name: `coordinator cut off from NATS (${isReset ? 'reset' : 'silent'})`,
      victim,
      freezes: false,
      maxAwayMs: 0,
      permits: isIsolated,
      inject: (signal) => interrupt(victim.nats, ms, isReset, signal),
    };
  }

  #cutFromPostgres(): Fault {
    const victim = this.#pick(this.#cluster.coordinators);
    const ms = this.#randomBetween(2_000, 10_000);
    const isReset = this.#random() < 0.5;
    return {
      name: `coordinator cut off from PostgreSQL (${isReset ? 'reset' : 'silent'})`,
      victim,
      freezes: false,
      maxAwayMs: 0,
      permits: (outcome) => isThroughVictim(outcome, victim) && isWithoutBilling(outcome),
      delaysSettlements: true,
      inject: (signal) => interrupt([victim.postgres], ms, isReset, signal),
    };
  }

  #postgresRestarted(): Fault {
    const { postgres } = this.#cluster.network;
    const isCrash = this.#random() < 0.5;
    return {
      name: `PostgreSQL ${isCrash ? 'crashed' : 'restarted'}`,
      victim: null,
      freezes: false,
      maxAwayMs: 0,
      permits: isWithoutBilling,
      delaysSettlements: true,
      inject: async () => {
        const ended = postgres.current;
        // PostgreSQL's fast shutdown, or immediate shutdown with recovery at the next start.
        ended.kill(isCrash ? 'SIGQUIT' : 'SIGINT');
        await ended.exited;
      },
    };
  }

  #agentMoves(): Fault {
    const agent = this.#pick(this.#cluster.lightAgents);
    const target = this.#pick(this.#cluster.coordinators);
    return {
      name: 'agent moved',
      victim: null,
      freezes: false,
      maxAwayMs: AWAY_MS,
      permits: hasLostProvider,
      inject: async () => {
        this.#cluster.setDestination(agent, target);
        agent.socket.terminate();
      },
    };
  }

  /** Stalls an agent's connection without closing. The agent detects the silence, and joins another coordinator. */
  #agentFallsSilent(): Fault {
    const { coordinators, lightAgents } = this.#cluster;
    const agent = lightAgents[0] as LightAgent;
    const place = coordinators.find((coordinator) => coordinator.agent.address === agent.coordinatorUrl) as Coordinator;
    const alsoNats = this.#random() < 0.5;
    const ms = this.#randomBetween(6_000, 9_000);
    return {
      name: alsoNats ? 'agent moved from a silent connection, all NATS away' : 'agent moved from a silent connection',
      victim: null,
      freezes: false,
      maxAwayMs: AWAY_MS,
      permits: (outcome) => hasLostProvider(outcome) || (alsoNats && isIsolated(outcome)),
      inject: (signal) => {
        const nats = alsoNats ? coordinators.flatMap((coordinator) => coordinator.nats) : [];
        return interrupt([place.agent, ...nats], ms, false, signal);
      },
    };
  }

  #randomBetween(min: number, max: number): number {
    return min + this.#random() * (max - min);
  }

  #pick<Value>(values: readonly Value[]): Value {
    return values[Math.floor(this.#random() * values.length)] as Value;
  }

  #shuffled<Value>(values: Value[]): Value[] {
    for (let index = values.length - 1; index > 0; index--) {
      const other = Math.floor(this.#random() * (index + 1));
      [values[index], values[other]] = [values[other] as Value, values[index] as Value];
    }
    return values;
  }
}

/** Whether the client was, or may have been, connected to the victim. */
function isThroughVictim({ coordinator }: Outcome, victim: Coordinator): boolean {
  return coordinator === null || coordinator === victim.index;
}

/** Whether the outcome fits a client's or a provider's coordinator that stopped. */
function hasLostCoordinator(outcome: Outcome, victim: Coordinator): boolean {
  if (isThroughVictim(outcome, victim) && outcome.kind === 'cut') return true;
  // A newly started coordinator does not know the others yet.
  if (outcome.coordinator === victim.index && NO_PROVIDER.has(outcome.detail)) return true;
  return hasLostProvider(outcome);
}

function hasLostProvider({ kind, detail }: Outcome): boolean {
  return (kind === 'broken' || kind === 'refused') && PROVIDER_LOST.has(detail);
}

/** Whether the outcome fits coordinators without NATS: only each coordinator's own agents are reachable. */
function isIsolated(outcome: Outcome): boolean {
  return hasLostProvider(outcome) || (outcome.kind === 'refused' && NO_PROVIDER.has(outcome.detail));
}

function isWithoutBilling({ kind, detail }: Outcome): boolean {
  return kind === 'refused' && detail === '503 billing_unavailable';
}

/** Stalls all data of the connections for a time. With `isReset`, also resets the open connections before and after. */
async function interrupt(proxies: readonly TcpProxy[], ms: number, isReset: boolean, signal: AbortSignal): Promise<void> {
  for (const proxy of proxies) {
    proxy.stall();
    if (isReset) proxy.cut();
  }
  await pause(ms, signal);
  for (const proxy of proxies) {
    proxy.resume();
    // During the stall, one side may have closed a connection without the other side noticing.
    if (isReset) proxy.cut();
  }
}

/** Resolves early on abort. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => {});
}
