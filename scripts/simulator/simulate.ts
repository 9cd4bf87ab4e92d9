/**
 * `simulate`: simulates a network for hours of virtual time, while machines come and go, and reports how well a placement policy did.
 *
 * The same seed gives the same result, apart from real run times.
 */
import { type ClusterOptions, type ClusterReport, SimulatedCluster } from './cluster.js';
import { EventQueue } from './event-queue.js';
import { SimulatedMac } from './mac.js';
import { SimulatedCoordinator, type SimulatedNetwork } from './network.js';
import type { Policy } from './policies.js';
import { Random } from './random.js';
import { type Report, Statistics } from './statistics.js';
import { type Job, Workload } from './workload.js';

export interface Scenario {
  readonly seed: number;
  readonly providers: number;
  readonly accounts: number;
  /** Mean requests per hour, divided by the mean number of online machines. */
  readonly requestsPerProvider: number;
  /** Virtual duration; also the length of one daily cycle of demand. */
  readonly hours: number;
  readonly burstShare: number;
  /** Probability that an installed model is loaded at the start. */
  readonly loadedShare: number;
}

const HOUR_MS = 3_600_000;
/** Share of the run whose arrivals are not counted. */
const WARM_UP_SHARE = 0.1;
/** Share of machines online, at the start and on average. */
const ONLINE_SHARE = 0.75;
/** Mean times online and offline. */
const ONLINE_MS = 4 * HOUR_MS;
const OFFLINE_MS = (ONLINE_MS * (1 - ONLINE_SHARE)) / ONLINE_SHARE;

export interface Outcome<Network extends SimulatedNetwork = SimulatedCoordinator> extends Report {
  readonly network: Network;
  readonly macs: readonly SimulatedMac[];
  /** Real run time, in milliseconds. */
  readonly tookMs: number;
}

export function simulate(world: Scenario, policy: Policy): Outcome {
  return run(
    world,
    policy,
    ({ events, random, statistics, answered }) => new SimulatedCoordinator(policy, events, random, statistics, answered),
  );
}

/** Simulates the same machines and the same demand with several coordinators. */
export function simulateCluster(world: Scenario, policy: Policy, options: ClusterOptions): Outcome<SimulatedCluster> & ClusterReport {
  const deathAtMs = options.hasDeath ? (world.hours * HOUR_MS) / 2 : null;
  const outcome = run(world, policy, (parts) => new SimulatedCluster({ ...parts, policy, options, deathAtMs }));
  return { ...outcome, ...outcome.network.report() };
}

/** What `run` shares with the network that it builds. */
interface Parts {
  readonly events: EventQueue;
  /** Random source for decisions of coordinators. */
  readonly random: Random;
  readonly statistics: Statistics;
  readonly answered: (job: Job) => void;
}

function run<Network extends SimulatedNetwork>(world: Scenario, policy: Policy, build: (parts: Parts) => Network): Outcome<Network> {
  const startedAt = performance.now();
  const endMs = world.hours * HOUR_MS;
  const events = new EventQueue();
  // Separate random sources: machines and demand are identical for every policy.
  const [machineRandom, demandRandom, ownRandom] = [new Random(world.seed), new Random(world.seed + 1), new Random(world.seed + 2)];
  const statistics = new Statistics(endMs * WARM_UP_SHARE, () => events.now);
  const network: Network = build({ events, random: ownRandom, statistics, answered: (job) => workload.answered(job) });
  const macs = Array.from(
    { length: world.providers },
    (_, index) =>
      new SimulatedMac(index, {
        events,
        random: new Random(machineRandom.next() * 2 ** 32),
        loadedShare: world.loadedShare,
        changed: (mac) => network.changed(mac),
      }),
  );
  const arrive = (mac: SimulatedMac): void => {
    mac.wake();
    statistics.joined(mac);
    network.join(mac);
    events.after(mac.random.exponential(ONLINE_MS), () => {
      statistics.left(mac);
      network.left(mac);
      mac.leave();
      events.after(mac.random.exponential(OFFLINE_MS), () => arrive(mac));
    });
  };
  for (const mac of macs) {
    if (machineRandom.happens(ONLINE_SHARE)) arrive(mac);
    else events.after(machineRandom.exponential(OFFLINE_MS), () => arrive(mac));
  }
  const rate = (world.providers * ONLINE_SHARE * world.requestsPerProvider) / 3600;
  const { accounts, burstShare } = world;
  const workload = new Workload({ seed: world.seed, accounts, rate, dayMs: endMs, burstShare }, events, demandRandom, (job) =>
    network.submit(job),
  );
  events.runUntil(endMs);
  return { ...statistics.report(policy.name), network, macs, tookMs: performance.now() - startedAt };
}
