/**
 * Estimates a request on a provider: time to the first and last token, from its rates and running jobs, plus a penalty for recent
 * failures. Rates are rounded to steps, so thousands of providers fall into a few classes that are evaluated once each.
 */

import type { ProviderFacts } from './eligibility.js';
import { type ModelLoad, READY_LOAD, remainingLoadMs } from './model-load.js';
import { DEFAULT_CONSTANTS, type SchedulerConstants } from './scheduler-constants.js';

/** Rates of one provider with one model for a job that runs alone, in tokens per second. */
export interface ThroughputEstimate {
  readonly prefillTps: number;
  readonly decodeTps: number;
  /** Jobs measured; 0: estimated from the hardware. */
  readonly samples: number;
}

/** Expected size of a request, in tokens. */
export interface Work {
  readonly promptTokens: number;
  readonly completionTokens: number;
}

/** All inputs of the estimate. Providers with equal traits have equal estimates. */
export interface Traits {
  readonly prefillTps: number;
  readonly decodeTps: number;
  readonly activeJobs: number;
  readonly failures: number;
  /** Hot, on battery or short of memory: the provider may slow down. */
  readonly isStrained: boolean;
  readonly hasHardwareTrust: boolean;
  readonly isMeasured: boolean;
  /** No answer has verified yet: the rates are estimated from the claimed hardware. */
  readonly isUntried: boolean;
  /** Until the model is in memory, in milliseconds. */
  readonly loadMs: number;
  /** The model is not loaded: a job would start the load. */
  readonly isCold: boolean;
  /** Without work for a long time. */
  readonly isOverdue: boolean;
}

/** Times in milliseconds. */
export interface LatencyEstimate {
  readonly firstTokenMs: number;
  readonly completionMs: number;
  /** The value by which providers are compared. */
  readonly costMs: number;
}

/** Rates within one step count as equal. */
const RATE_STEP = 1.25;
export const MAX_STEPS = 63;
const MIN_TPS = 0.1;
const FAILURE_STEPS = DEFAULT_CONSTANTS.failurePenaltiesMs.length;
const MAX_ACTIVE = 255;
/** Times of loading count in steps as well. */
const LOAD_STEP = 1.5;
const MIN_LOAD_MS = 250;
const MAX_LOAD_STEPS = 31;
/** Jobs before the rates count as measured. */
const MIN_MEASURED_SAMPLES = 3;

/** Whether a provider is proven: by enough verified answers with the model, or by the manufacturer's certificate chain. */
export function isProven({ facts, speed }: { readonly facts: ProviderFacts; readonly speed: ThroughputEstimate }): boolean {
  return facts.trustLevel === 'hardware' || isMeasured(speed);
}

/** Whether the rates were measured in enough answers. */
export function isMeasured({ samples }: ThroughputEstimate): boolean {
  return samples >= MIN_MEASURED_SAMPLES;
}

/** Whether the rates are a guess. */
export function isUntried({ samples }: ThroughputEstimate): boolean {
  return samples === 0;
}

/** Keys of rates are below this value. */
const MAX_RATES = (MAX_STEPS + 1) ** 2 * 3;

/** The part of {@link traitsKey} that depends on the rates alone. */
export function throughputKey(speed: ThroughputEstimate): number {
  return (step(speed.prefillTps) * (MAX_STEPS + 1) + step(speed.decodeTps)) * 3 + (isMeasured(speed) ? 2 : isUntried(speed) ? 0 : 1);
}

/** Inputs of {@link Traits} beside facts and rates. */
interface MemberState {
  readonly load: ModelLoad;
  readonly isOverdue: boolean;
}

const READY_STATE: MemberState = { load: READY_LOAD, isOverdue: false };

/** A number equal for equal traits and different otherwise. `now` in milliseconds. */
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
    prefillTps: rateAt(step(speed.prefillTps)),
    decodeTps: rateAt(step(speed.decodeTps)),
    activeJobs: Math.min(facts.usedSlots, MAX_ACTIVE),
    failures: Math.min(facts.recentFailures, FAILURE_STEPS - 1),
    isStrained: isStrained(facts),
    hasHardwareTrust: facts.trustLevel === 'hardware',
    isMeasured: isMeasured(speed),
    isUntried: isUntried(speed),
    loadMs: loadAt(loadStep(remainingLoadMs(load, now))),
    isCold: load.kind === 'cold',
    isOverdue,
  };
}

/** The estimate as coefficients, so each request costs two multiplications. Milliseconds, and milliseconds per token. */
export interface CostModel {
  /** Until the first token of an empty prompt. */
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

/** The comparison value as coefficients. The first token counts twice, because a client waits for it. */
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

/** The rate without concurrent jobs, from a rate measured beside `others`. */
export function unsharedRate(measuredTps: number, others: number, { batchSlowdown }: SchedulerConstants = DEFAULT_CONSTANTS): number {
  return measuredTps * (1 + batchSlowdown * others);
}

function isStrained({ host }: ProviderFacts): boolean {
  return host.thermal === 'serious' || host.memoryPressure === 'warning' || host.power === 'battery';
}

/** The step of a rate. */
export function rateStep(tps: number): number {
  return step(tps);
}

/** The rate of a step, in tokens per second. */
export function rateOfStep(steps: number): number {
  return rateAt(steps);
}

function step(tps: number): number {
  return Math.min(MAX_STEPS, Math.max(0, Math.round(Math.log(Math.max(tps, MIN_TPS) / MIN_TPS) / Math.log(RATE_STEP))));
}

function rateAt(steps: number): number {
  return MIN_TPS * RATE_STEP ** steps;
}

/** 0: in memory. */
function loadStep(loadMs: number): number {
  if (loadMs <= 0) return 0;
  return Math.min(MAX_LOAD_STEPS, 1 + Math.max(0, Math.round(Math.log(loadMs / MIN_LOAD_MS) / Math.log(LOAD_STEP))));
}

function loadAt(steps: number): number {
  return steps === 0 ? 0 : MIN_LOAD_MS * LOAD_STEP ** (steps - 1);
}
