/**
 * `ThroughputStats` estimates how fast each provider runs each model: prefill (reading the prompt) and decode (generating).
 *
 * Estimates are moving averages over verified answers. Before the first, they derive from the reported memory bandwidth.
 */
import type { Hardware, ProviderId } from '@inference/protocol';
import { BoundedMap } from '../bounded-map.js';
import { DEFAULT_CONSTANTS, type SchedulerConstants } from '../scheduler-constants.js';
import { type ThroughputEstimate, unsharedRate } from './job-cost.js';

/** Measurements of a verified answer. Times in milliseconds. */
export interface AnswerSample {
  readonly promptTokens: number;
  /** Prompt tokens that the provider reported as cached and did not compute. */
  readonly cachedTokens?: number;
  /** Includes tokens that the client does not see. */
  readonly completionTokens: number;
  /** The response was streamed and has no hidden tokens, so `firstContentMs` ends at the first generated token. */
  readonly streamed: boolean;
  /** Only the prompt was computed, as in embeddings. */
  readonly promptOnly?: boolean;
  /** From sending the job to its first content. */
  readonly firstContentMs: number;
  /** From sending the job to its end. */
  readonly elapsedMs: number;
  /** Other jobs that ran at the provider meanwhile. */
  readonly otherJobs: number;
}

/** Minimum weight of a new answer in the moving average. */
const NEWEST_WEIGHT = 0.2;
/** For shorter prompts, network latency dominates the measured time. */
const MIN_PROMPT_TOKENS = 64;
const MIN_COMPLETION_TOKENS = 8;
/** Model size assumed by the estimate, in gigabytes read per token. */
const ASSUMED_MODEL_GB = 8;
const DEFAULT_BANDWIDTH_GBS = 100;
const MAX_BANDWIDTH_GBS = 1000;
/** Assumed ratio of prefill to decode rate. */
const PREFILL_PER_DECODE = 12;
/** Upper limit of measured rates, in tokens per second. */
const MAX_TPS = 100_000;
const MAX_ENTRIES = 200_000;

export class ThroughputStats {
  readonly #constants: SchedulerConstants;
  readonly #speeds = new BoundedMap<string, ThroughputEstimate>(MAX_ENTRIES);

  constructor(constants: SchedulerConstants = DEFAULT_CONSTANTS) {
    this.#constants = constants;
  }

  estimate(providerId: ProviderId, model: string, hardware: Hardware): ThroughputEstimate {
    return this.#speeds.get(keyOf(providerId, model)) ?? estimateFromHardware(hardware);
  }

  /** Adds an answer and returns the updated estimate; null if the answer is too short to measure. */
  record(providerId: ProviderId, model: string, hardware: Hardware, sample: AnswerSample): ThroughputEstimate | null {
    const key = keyOf(providerId, model);
    const known = this.#speeds.get(key) ?? estimateFromHardware(hardware);
    const prefill = prefillRate(sample, this.#constants);
    const decode = decodeRate(sample, known, this.#constants);
    if (prefill === null && decode === null) return null;
    // The first answers are averaged, so the hardware estimate fades quickly.
    const weight = Math.max(NEWEST_WEIGHT, 1 / (known.samples + 1));
    const estimate = {
      prefillTps: blendRates(known.prefillTps, prefill, weight),
      decodeTps: blendRates(known.decodeTps, decode, weight),
      samples: known.samples + 1,
    };
    this.#speeds.set(key, estimate);
    return estimate;
  }
}

function keyOf(providerId: ProviderId, model: string): string {
  return `${providerId} ${model}`;
}

/** Rates of a provider without measured answers. */
export function estimateFromHardware({ bandwidth_gbs }: Hardware): ThroughputEstimate {
  const bandwidth = bandwidth_gbs === 0 ? DEFAULT_BANDWIDTH_GBS : Math.min(bandwidth_gbs, MAX_BANDWIDTH_GBS);
  const decodeTps = bandwidth / ASSUMED_MODEL_GB;
  return { prefillTps: decodeTps * PREFILL_PER_DECODE, decodeTps, samples: 0 };
}

function prefillRate(sample: AnswerSample, constants: SchedulerConstants): number | null {
  const computed = computedTokens(sample);
  if (computed < MIN_PROMPT_TOKENS) return null;
  const promptMs = sample.promptOnly === true ? sample.elapsedMs : sample.streamed ? sample.firstContentMs : null;
  return promptMs === null ? null : unsharedRate((1000 * computed) / Math.max(1, promptMs), sample.otherJobs, constants);
}

/** Decode rate of a sample; null if too short. Without streaming, the prompt's share of the time is estimated. */
function decodeRate(sample: AnswerSample, known: ThroughputEstimate, constants: SchedulerConstants): number | null {
  const { completionTokens, streamed, firstContentMs, elapsedMs, otherJobs } = sample;
  if (completionTokens < MIN_COMPLETION_TOKENS) return null;
  const promptMs = streamed ? firstContentMs : Math.min(elapsedMs / 2, (1000 * computedTokens(sample)) / known.prefillTps);
  return unsharedRate((1000 * completionTokens) / Math.max(1, elapsedMs - promptMs), otherJobs, constants);
}

function computedTokens({ promptTokens, cachedTokens = 0 }: AnswerSample): number {
  return Math.max(0, promptTokens - cachedTokens);
}

function blendRates(known: number, measured: number | null, weight: number): number {
  return measured === null ? known : known + weight * (Math.min(measured, MAX_TPS) - known);
}
