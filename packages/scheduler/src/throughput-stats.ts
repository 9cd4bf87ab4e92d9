/**
 * How fast each machine is with each model, as the coordinator itself measured it in answers that verified; before that, a guess
 * from the memory bandwidth. Newer answers count for more, and it is remembered when a machine comes back.
 */
import type { Hardware, ProviderId } from '@inference/protocol';
import { BoundedMap } from './bounded-map.js';
import { type ThroughputEstimate, unsharedRate } from './job-cost.js';
import { DEFAULT_CONSTANTS, type SchedulerConstants } from './scheduler-constants.js';

/** A verified answer. Times in milliseconds. */
export interface AnswerSample {
  readonly promptTokens: number;
  /** Those of the prompt that the machine still knew, by its own word: what it did not compute says nothing of its speed. */
  readonly cachedTokens?: number;
  /** Hidden ones included. */
  readonly completionTokens: number;
  readonly streamed: boolean;
  /** Nothing but the prompt was computed, as for vectors. */
  readonly promptOnly?: boolean;
  /** From the sending of the job to its first content. */
  readonly firstContentMs: number;
  /** From the sending of the job to its end. */
  readonly elapsedMs: number;
  /** Jobs that the machine had beside this one. */
  readonly otherJobs: number;
}

/** Weight of the newest answer, once there are some. */
const NEWEST_WEIGHT = 0.2;
/** Shorter ones say more of the network than of the machine. Tokens. */
const MIN_PROMPT_TOKENS = 64;
const MIN_COMPLETION_TOKENS = 8;
/** Model that a guess is for, in gigabytes that each token reads. */
const ASSUMED_MODEL_GB = 8;
const DEFAULT_BANDWIDTH_GBS = 100;
const MAX_BANDWIDTH_GBS = 1000;
/** A prompt's tokens are computed together. */
const PREFILL_PER_DECODE = 12;
/** The fastest that is believed, in tokens per second. */
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

  /** Takes in an answer. Gives the new rates, or null when it says nothing about them. */
  record(providerId: ProviderId, model: string, hardware: Hardware, sample: AnswerSample): ThroughputEstimate | null {
    const key = keyOf(providerId, model);
    const known = this.#speeds.get(key) ?? estimateFromHardware(hardware);
    const prefill = prefillRate(sample, this.#constants);
    const decode = decodeRate(sample, known, this.#constants);
    if (prefill === null && decode === null) return null;
    // The first ones are averaged, so that the guess is gone soon.
    const weight = Math.max(NEWEST_WEIGHT, 1 / (known.samples + 1));
    const estimate = {
      prefillTps: blend(known.prefillTps, prefill, weight),
      decodeTps: blend(known.decodeTps, decode, weight),
      samples: known.samples + 1,
    };
    this.#speeds.set(key, estimate);
    return estimate;
  }
}

function keyOf(providerId: ProviderId, model: string): string {
  return `${providerId} ${model}`;
}

/** Rates of a machine that was not measured. */
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

/** A plain answer comes as a whole, so that the time for the prompt has to be guessed. */
function decodeRate(sample: AnswerSample, known: ThroughputEstimate, constants: SchedulerConstants): number | null {
  const { completionTokens, streamed, firstContentMs, elapsedMs, otherJobs } = sample;
  if (completionTokens < MIN_COMPLETION_TOKENS) return null;
  const promptMs = streamed ? firstContentMs : Math.min(elapsedMs / 2, (1000 * computedTokens(sample)) / known.prefillTps);
  return unsharedRate((1000 * completionTokens) / Math.max(1, elapsedMs - promptMs), otherJobs, constants);
}

function computedTokens({ promptTokens, cachedTokens = 0 }: AnswerSample): number {
  return Math.max(0, promptTokens - cachedTokens);
}

function blend(known: number, measured: number | null, weight: number): number {
  return measured === null ? known : known + weight * (Math.min(measured, MAX_TPS) - known);
}
