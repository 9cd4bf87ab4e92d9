/**
 * How fast each machine is with each model, as the coordinator itself measured it in answers that verified; before that, a guess
 * from the memory bandwidth. Newer answers count for more, and it is remembered when a machine comes back.
 */
import type { Hardware, ProviderId } from '@inference/protocol';
import { BoundedMap } from '../../limits/bounded-map.js';
import { CONSTANTS, type SchedulerConstants } from './constants.js';
import { aloneRate, type Speed } from './cost.js';

/** A verified answer. Times in milliseconds. */
export interface Sample {
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
const NEWEST = 0.2;
/** Shorter ones say more of the network than of the machine. Tokens. */
const MIN_PROMPT = 64;
const MIN_COMPLETION = 8;
/** Model that a guess is for, in gigabytes that each token reads. */
const GUESSED_GB = 8;
const GUESSED_BANDWIDTH_GBS = 100;
const MAX_BANDWIDTH_GBS = 1000;
/** A prompt's tokens are computed together. */
const PREFILL_PER_DECODE = 12;
/** The fastest that is believed, in tokens per second. */
const MAX_TPS = 100_000;
const MAX_REMEMBERED = 200_000;

export class SpeedBook {
  readonly #constants: SchedulerConstants;
  readonly #speeds = new BoundedMap<string, Speed>(MAX_REMEMBERED);

  constructor(constants: SchedulerConstants = CONSTANTS) {
    this.#constants = constants;
  }

  speed(providerId: ProviderId, model: string, hardware: Hardware): Speed {
    return this.#speeds.get(keyOf(providerId, model)) ?? guessedSpeed(hardware);
  }

  /** Takes in an answer. Gives the new rates, or null when it says nothing about them. */
  learn(providerId: ProviderId, model: string, hardware: Hardware, sample: Sample): Speed | null {
    const key = keyOf(providerId, model);
    const known = this.#speeds.get(key) ?? guessedSpeed(hardware);
    const prefill = prefillRate(sample, this.#constants);
    const decode = decodeRate(sample, known, this.#constants);
    if (prefill === null && decode === null) return null;
    // The first ones are averaged, so that the guess is gone soon.
    const weight = Math.max(NEWEST, 1 / (known.samples + 1));
    const speed = {
      prefillTps: blend(known.prefillTps, prefill, weight),
      decodeTps: blend(known.decodeTps, decode, weight),
      samples: known.samples + 1,
    };
    this.#speeds.set(key, speed);
    return speed;
  }
}

function keyOf(providerId: ProviderId, model: string): string {
  return `${providerId} ${model}`;
}

/** Rates of a machine that was not measured. */
export function guessedSpeed({ bandwidth_gbs }: Hardware): Speed {
  const bandwidth = bandwidth_gbs === 0 ? GUESSED_BANDWIDTH_GBS : Math.min(bandwidth_gbs, MAX_BANDWIDTH_GBS);
  const decodeTps = bandwidth / GUESSED_GB;
  return { prefillTps: decodeTps * PREFILL_PER_DECODE, decodeTps, samples: 0 };
}

function prefillRate(sample: Sample, constants: SchedulerConstants): number | null {
  const computed = computedTokens(sample);
  if (computed < MIN_PROMPT) return null;
  const promptMs = sample.promptOnly === true ? sample.elapsedMs : sample.streamed ? sample.firstContentMs : null;
  return promptMs === null ? null : aloneRate((1000 * computed) / Math.max(1, promptMs), sample.otherJobs, constants);
}

/** A plain answer comes as a whole, so that the time for the prompt has to be guessed. */
function decodeRate(sample: Sample, known: Speed, constants: SchedulerConstants): number | null {
  const { completionTokens, streamed, firstContentMs, elapsedMs, otherJobs } = sample;
  if (completionTokens < MIN_COMPLETION) return null;
  const promptMs = streamed ? firstContentMs : Math.min(elapsedMs / 2, (1000 * computedTokens(sample)) / known.prefillTps);
  return aloneRate((1000 * completionTokens) / Math.max(1, elapsedMs - promptMs), otherJobs, constants);
}

function computedTokens({ promptTokens, cachedTokens = 0 }: Sample): number {
  return Math.max(0, promptTokens - cachedTokens);
}

function blend(known: number, measured: number | null, weight: number): number {
  return measured === null ? known : known + weight * (Math.min(measured, MAX_TPS) - known);
}
