/** `Price` of a model and the cost of a job. Pure, integers only; each part is rounded up to a whole micro-USD. */
import { type MicroUsd, microUsd } from '../micro-usd.js';

/** Price of a model. Immutable: a change sets a new price, and a job settles at the price of its reservation. */
export interface Price {
  readonly id: string;
  readonly model: string;
  /** Micro-USD per million tokens. */
  readonly promptPerMillion: MicroUsd;
  /** Of prompt tokens from the prefix cache; at most `promptPerMillion`. Left out or null: the same. */
  readonly cachedPerMillion?: MicroUsd | null;
  readonly completionPerMillion: MicroUsd;
  /** Micro-USD per image of 1024×1024 pixels. Other sizes by pixels, see {@link imageRates}. */
  readonly perImage: MicroUsd;
  /** Milliseconds since 1970. Valid until the `validFrom` of the next price. */
  readonly validFrom: number;
}

/** Rates of a price, as copied into a reservation. */
export type Rates = Pick<Price, 'promptPerMillion' | 'cachedPerMillion' | 'completionPerMillion' | 'perImage'>;

/** Rate of prompt tokens from the prefix cache, in micro-USD per million. */
export function cachedRate({ promptPerMillion, cachedPerMillion }: Pick<Rates, 'promptPerMillion' | 'cachedPerMillion'>): MicroUsd {
  return cachedPerMillion ?? promptPerMillion;
}

const MILLION = 1_000_000n;
/** Pixels of the image size that `perImage` applies to. */
const PRICED_PIXELS = 1024 * 1024;

/** Rates of an image job: `perImage` scaled by pixels, rounded up to a whole micro-USD. Tokens of an image prompt are free. */
export function imageRates({ perImage }: Rates, pixels: number): Rates {
  const scaled = Math.ceil((count(pixels) * perImage) / PRICED_PIXELS);
  return { promptPerMillion: microUsd(0), cachedPerMillion: null, completionPerMillion: microUsd(0), perImage: microUsd(scaled) };
}

/** Counts of a job. Cached tokens are part of the prompt tokens. */
interface PricedUsage {
  readonly promptTokens: number;
  readonly cachedTokens?: number;
  readonly completionTokens: number;
  readonly images?: number;
}

/**
 * Cost of a usage: prompt tokens (cached and others together), completion tokens and images, each priced and rounded up, then added.
 * Cached tokens never cost more than others.
 *
 * No priced usage is free, and a job costs at most 2 micro-USD more than its exact price. Throws RangeError for counts that are no
 * whole numbers, or for a cost beyond exact integers.
 */
export function costOf(price: Rates, usage: PricedUsage): MicroUsd {
  const { promptTokens, cachedTokens = 0 } = usage;
  if (count(cachedTokens) > promptTokens) throw new RangeError('cached tokens must be part of the prompt tokens');
  const prompt = partCost([
    [promptTokens - cachedTokens, price.promptPerMillion],
    [cachedTokens, cachedRate(price)],
  ]);
  const completion = partCost([[usage.completionTokens, price.completionPerMillion]]);
  const images = count(usage.images ?? 0) * price.perImage;
  return microUsd(prompt + completion + images);
}

function partCost(parts: readonly (readonly [tokens: number, perMillion: MicroUsd])[]): number {
  const sum = parts.reduce((total, [tokens, perMillion]) => total + count(tokens) * perMillion, 0);
  // The usual case, without big integers: an exact sum rounds up exactly.
  if (Number.isSafeInteger(sum)) return Math.ceil(sum / 1_000_000);
  const exact = parts.reduce((total, [tokens, perMillion]) => total + BigInt(tokens) * BigInt(perMillion), 0n);
  return Number((exact + MILLION - 1n) / MILLION);
}

function count(value: number): number {
  if (!Number.isSafeInteger(value) || value < 0) throw new RangeError('a count must be a whole number');
  return value;
}
