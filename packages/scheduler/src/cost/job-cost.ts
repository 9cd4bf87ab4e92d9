/**
 * Cost of a request on a provider: weighted expected latency plus penalties, in milliseconds. Placement prefers low costs.
 *
 * Rates and load times are rounded to logarithmic steps, so that similar providers have equal traits, and form one group.
 */

import type { ProviderFacts } from '../eligibility.js';
import { DEFAULT_CONSTANTS, type SchedulerConstants } from '../scheduler-constants.js';
import { type ModelLoad, READY_LOAD, remainingLoadMs } from './model-load.js';

/** Rates of one provider and model without concurrent jobs, in tokens per second. */
export interface ThroughputEstimate {
  readonly prefillTps: number;
  readonly decodeTps: number;
  /** Number of measured jobs; 0: estimated from the hardware. */
  readonly samples: number;
}

/** Expected size of a request, in tokens. */
export interface Work {
  readonly promptTokens: number;
  readonly completionTokens: number;
}

/** Everything that determines a provider's cost. Providers with equal traits share a group. */
export interface Traits {
  readonly prefillTps: number;
  readonly decodeTps: number;
  readonly activeJobs: number;
  readonly failures: number;
  /** The machine is hot, on battery or short of memory, so it may slow down. */
  readonly isStrained: boolean;
  readonly hasHardwareTrust: boolean;
  readonly isMeasured: boolean;
  /** No verified answer was measured: rates are estimated from the claimed hardware. */
  readonly isUntried: boolean;
  /** Time until the model is in memory, in milliseconds. */
  readonly loadMs: number;
  /** The next job would make the provider load the model. */
  readonly isCold: boolean;
  /** Idle for at least `overdueMs`. */
  readonly isOverdue: boolean;
}

/** Times in milliseconds. */
export interface LatencyEstimate {
  readonly firstTokenMs: number;
  readonly completionMs: number;
  /** The value that placement compares; see {@link costOf}. */
  readonly costMs: number;
}

/** Ratio between neighbouring rate steps. */
const RATE_STEP = 1.25;
/** Highest rate step. */
export const MAX_STEPS = 63;
/** Rate of step 0, in tokens per second. */
const MIN_TPS = 0.1;
const FAILURE_STEPS = DEFAULT_CONSTANTS.failurePenaltiesMs.length;
const MAX_ACTIVE = 255;
/** Ratio between neighbouring load time steps. */
const LOAD_STEP = 1.5;
const MIN_LOAD_MS = 250;
const MAX_LOAD_STEPS = 31;
/** Number of measured answers from which rates count as measured. */
const MIN_MEASURED_SAMPLES = 3;

/** Whether the provider has a certificate chain of its hardware, or enough measured answers. */
export function isProven({ facts, speed }: { readonly facts: ProviderFacts; readonly speed: ThroughputEstimate }): boolean {
  return facts.trustLevel === 'hardware' || isMeasured(speed);
}

export function isMeasured({ samples }: ThroughputEstimate): boolean {
  return samples >= MIN_MEASURED_SAMPLES;
}

export function isUntried({ samples }: ThroughputEstimate): boolean {
  return samples === 0;
}

/** Number of possible values of {@link throughputKey}. */
const MAX_RATES = (MAX_STEPS + 1) ** 2 * 3;

/** The rates' part of {@link traitsKey}. */
export function throughputKey(speed: ThroughputEstimate): number {
  return (
    (rateStep(speed.prefillTps) * (MAX_STEPS + 1) + rateStep(speed.decodeTps)) * 3 + (isMeasured(speed) ? 2 : isUntried(speed) ? 0 : 1)
  );
}

/** State of a pool member that affects its {@link Traits}, apart from facts and rates. */
interface MemberState {
  readonly load: ModelLoad;
  readonly isOverdue: boolean;
}

const READY_STATE: MemberState = { load: READY_LOAD, isOverdue: false };

/** Encodes the result of {@link traitsOf} as one number, the key of a provider group. `rates`: from {@link throughputKey}. */
export function traitsKey(facts: ProviderFacts, rates: number, { load, isOverdue }: MemberState, now: number): number {
  const active = Math.min(facts.usedSlots, MAX_ACTIVE);
  const failures = Math.min(facts.recentFailures, FAILURE_STEPS - 1);
  const flags = (isOverdue ? 4 : 0) + (isStrained(facts) ? 2 : 0) + (facts.trustLevel === 'hardware' ? 1 : 0);
  const loading = load.kind === 'ready' ? 0 : loadStep(remainingLoadMs(load, now)) * 2 + (load.kind === 'cold' ? 1 : 0);
  return (((loading * MAX_RATES + rates) * (MAX_ACTIVE + 1) + active) * FAILURE_STEPS + failures) * 8 + flags;
}

/** `now` in milliseconds. */
export function traitsOf(facts: ProviderFacts, speed: ThroughputEstimate, { load, isOverdue }: MemberState = READY_STATE, now = 0): Traits {
  return {
    prefillTps: rateOfStep(rateStep(speed.prefillTps)),
    decodeTps: rateOfStep(rateStep(speed.decodeTps)),
    activeJobs: Math.min(facts.usedSlots, MAX_ACTIVE),
    failures: Math.min(facts.recentFailures, FAILURE_STEPS - 1),
    isStrained: isStrained(facts),
    hasHardwareTrust: facts.trustLevel === 'hardware',
    isMeasured: isMeasured(speed),
    isUntried: isUntried(speed),
    loadMs: loadOfStep(loadStep(remainingLoadMs(load, now))),
    isCold: load.kind === 'cold',
    isOverdue,
  };
}

/** Linear model of a request's latency. */
export interface CostModel {
  /** Time to the first token of an empty prompt. */
  readonly waitMs: number;
  readonly msPerPromptToken: number;
  readonly msPerCompletionToken: number;
  readonly penaltyMs: number;
}

export function costModelOf(traits: Traits, constants: SchedulerConstants = DEFAULT_CONSTANTS): CostModel {
  const { batchSlowdown, strainedFactor, turnMs, failurePenaltiesMs, loadPenaltyFactor } = constants;
  const slower = (1 + batchSlowdown * traits.activeJobs) * (traits.isStrained ? strainedFactor : 1);
  return {
    waitMs: traits.activeJobs * turnMs + traits.loadMs,
    msPerPromptToken: (1000 * slower) / traits.prefillTps,
    msPerCompletionToken: (1000 * slower) / traits.decodeTps,
    penaltyMs: (failurePenaltiesMs[traits.failures] ?? 0) + (traits.isCold ? loadPenaltyFactor * traits.loadMs : 0),
  };
}

/** Coefficients of {@link costOf}. Time to the first token has double weight, because the client sees nothing before. */
export function costCoefficients({ waitMs, msPerPromptToken, msPerCompletionToken, penaltyMs }: CostModel): {
  fixedMs: number;
  promptMs: number;
  completionMs: number;
} {
  return { fixedMs: 2 * waitMs + penaltyMs, promptMs: 2 * msPerPromptToken, completionMs: msPerCompletionToken };
}

/** Cost of a request, in milliseconds. */
export function costOf(costModel: CostModel, work: Work): number {
  const { fixedMs, promptMs, completionMs } = costCoefficients(costModel);
  return fixedMs + work.promptTokens * promptMs + work.completionTokens * completionMs;
}

export function estimateOf(costModel: CostModel, work: Work): LatencyEstimate {
  const firstTokenMs = costModel.waitMs + work.promptTokens * costModel.msPerPromptToken;
  return {
    firstTokenMs,
    completionMs: firstTokenMs + work.completionTokens * costModel.msPerCompletionToken,
    costMs: costOf(costModel, work),
  };
}

/** Converts a rate measured with `others` concurrent jobs into the rate without concurrent jobs. */
export function unsharedRate(measuredTps: number, others: number, { batchSlowdown }: SchedulerConstants = DEFAULT_CONSTANTS): number {
  return measuredTps * (1 + batchSlowdown * others);
}

function isStrained({ host }: ProviderFacts): boolean {
  return host.thermal === 'serious' || host.memoryPressure === 'warning' || host.power === 'battery';
}

/** Nearest step of a rate in tokens per second, 0 to `MAX_STEPS`. */
export function rateStep(tps: number): number {
  return Math.min(MAX_STEPS, Math.max(0, Math.round(Math.log(Math.max(tps, MIN_TPS) / MIN_TPS) / Math.log(RATE_STEP))));
}

/** Rate of a step, in tokens per second. */
export function rateOfStep(step: number): number {
  return MIN_TPS * RATE_STEP ** step;
}

/** Nearest step of a load time; 0: in memory. */
function loadStep(loadMs: number): number {
  if (loadMs <= 0) return 0;
  return Math.min(MAX_LOAD_STEPS, 1 + Math.max(0, Math.round(Math.log(loadMs / MIN_LOAD_MS) / Math.log(LOAD_STEP))));
}

function loadOfStep(step: number): number {
  return step === 0 ? 0 : MIN_LOAD_MS * LOAD_STEP ** (step - 1);
}
