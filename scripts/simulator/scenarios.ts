/** Scenarios ("worlds") of `npm run simulate`, and the sweep: trials that each vary one constant of the scheduler or the queue. */
import { DEFAULT_CONSTANTS, type SchedulerConstants } from '@inference/scheduler';
import { type Policy, SCHEDULER } from './policies.js';
import type { Scenario } from './simulate.js';

const SEED = 1;

export const SCENARIOS = {
  /** A large network, mostly idle. */
  large: { seed: SEED, providers: 100_000, accounts: 20_000, requestsPerProvider: 3, hours: 1.3, burstShare: 0.15, loadedShare: 0.85 },
  /** A smaller, mostly idle network, for quick trials. */
  quiet: { seed: SEED, providers: 800, accounts: 400, requestsPerProvider: 15, hours: 1.5, burstShare: 0.15, loadedShare: 0.85 },
  /** Few busy machines. */
  busy: { seed: SEED, providers: 200, accounts: 200, requestsPerProvider: 300, hours: 0.5, burstShare: 0.15, loadedShare: 0.85 },
  /** Enough machines for several coordinators, with two thirds of the demand per machine of `busy`. */
  shared: { seed: SEED, providers: 1000, accounts: 400, requestsPerProvider: 200, hours: 0.3, burstShare: 0.15, loadedShare: 0.85 },
  /** More demand than capacity: many requests queue. */
  overload: { seed: SEED, providers: 80, accounts: 100, requestsPerProvider: 1200, hours: 0.4, burstShare: 0.3, loadedShare: 0.85 },
  /** Most models are unloaded, and many requests come in bursts. */
  cold: { seed: SEED, providers: 200, accounts: 200, requestsPerProvider: 100, hours: 0.7, burstShare: 0.6, loadedShare: 0.1 },
} as const satisfies Record<string, Scenario>;

export type ScenarioName = keyof typeof SCENARIOS;

export interface Trial {
  readonly constant: string;
  readonly world: ScenarioName;
  readonly policies: readonly Policy[];
}

/** For each constant, a world in which it matters, and values around the default, whose name is bold. */
export const SWEEP: readonly Trial[] = [
  trialOf('nearTieFactor', 'busy', [1, 1.05, 1.15, 1.3, 1.6]),
  trialOf('measuringShare', 'busy', [0, 0.02, 0.05, 0.1, 0.2]),
  trialOf('overdueShare', 'quiet', [0, 0.1, 0.25, 0.5, 1]),
  trialOf('overdueMaxFactor', 'quiet', [2, 4, 8, 16]),
  trialOf('overdueMs', 'quiet', [900_000, 1_800_000, 2_700_000]),
  trialOf('batchSlowdown', 'busy', [0.1, 0.25, 0.5, 1]),
  trialOf('turnMs', 'busy', [0, 50, 100, 300, 1000]),
  trialOf('failurePenaltiesMs', 'busy', [
    [0, 0, 0, 0],
    [0, 1000, 4000, 15_000],
    [0, 5000, 20_000, 60_000],
    [0, 20_000, 60_000, 300_000],
  ]),
  trialOf('affinityWeight', 'busy', [0, 0.5, 0.75, 1]),
  trialOf('loadPenaltyFactor', 'cold', [0, 1, 3]),
  trialOf('maxLoads', 'cold', [1, 2, 4, 1000]),
  {
    constant: 'MAX_WAIT_RATIO',
    world: 'overload',
    policies: [0.5, 1, 2, 4].map(
      (maxWaitRatio): Policy => ({
        ...SCHEDULER,
        maxWaitRatio,
        name: markDefault(`MAX_WAIT_RATIO ${maxWaitRatio}`, maxWaitRatio === SCHEDULER.maxWaitRatio),
      }),
    ),
  },
];

function trialOf<K extends keyof SchedulerConstants>(constant: K, world: ScenarioName, values: readonly SchedulerConstants[K][]): Trial {
  const policies = values.map((value): Policy => {
    const isDefault = JSON.stringify(DEFAULT_CONSTANTS[constant]) === JSON.stringify(value);
    return {
      ...SCHEDULER,
      name: markDefault(`${constant} ${String(value)}`, isDefault),
      constants: { ...DEFAULT_CONSTANTS, [constant]: value },
    };
  });
  return { constant, world, policies };
}

function markDefault(name: string, isDefault: boolean): string {
  return isDefault ? `**${name}**` : name;
}
