/** `Price` of a model, and `costOf`, which computes the cost of a job. All amounts are whole micro-USD; costs are rounded up. */
import { type MicroUsd, microUsd } from '../micro-usd.js';

/** A changed price is a new `Price`. Jobs are charged at the price that was valid when they were reserved. */
export interface Price {
  /** Id of this version of the price, or `default` for the configured rates. */
  readonly id: string;
  readonly model: string;
  /** Micro-USD per million tokens. */
  readonly promptPerMillion: MicroUsd;
  /** Micro-USD per million prompt tokens that the provider had cached. Absent or null: `promptPerMillion`, which is also the maximum. */
  readonly cachedPerMillion?: MicroUsd | null;
  /** Micro-USD per million tokens. */
  readonly completionPerMillion: MicroUsd;
  /** Micro-USD per image of 1024×1024 pixels. Scaled by pixels for other sizes, see {@link imageRates}. */
  readonly perImage: MicroUsd;
  /** Milliseconds since 1970. Valid until the next price begins. */
  readonly validFrom: number;
}

/** Rates of a price, copied into a reservation. For an image job, `perImage` is scaled to the size of its images. */
export type Rates = Pick<Price, 'promptPerMillion' | 'cachedPerMillion' | 'completionPerMillion' | 'perImage'>;

/** Rate of cached prompt tokens, in micro-USD per million. */
export function cachedRate({ promptPerMillion, cachedPerMillion }: Pick<Rates, 'promptPerMillion' | 'cachedPerMillion'>): MicroUsd {
  return cachedPerMillion ?? promptPerMillion;
}

const MILLION = 1_000_000n;
/** Pixels of an image that costs `perImage`. */
const PRICED_PIXELS = 1024 * 1024;

/** Rates of an image job: `perImage` scaled to images of `pixels` pixels and rounded up. The prompt of an image job is free. */
export function imageRates({ perImage }: Rates, pixels: number): Rates {
  const scaled = Math.ceil((count(pixels) * perImage) / PRICED_PIXELS);
  return { promptPerMillion: microUsd(0), cachedPerMillion: null, completionPerMillion: microUsd(0), perImage: microUsd(scaled) };
}

/** Billed counts of a job. Cached tokens are part of the prompt tokens. */
interface PricedUsage {
  readonly promptTokens: number;
  readonly cachedTokens?: number;
  readonly completionTokens: number;
  readonly images?: number;
}

/**
 * Cost of a usage: prompt tokens, completion tokens and images are priced and rounded up separately, then added.
 *
 * Rounding adds less than 2 micro-USD, and no usage with a price is free.
 *
 * Throws RangeError for counts that are not whole numbers, or for a cost that is not an exact integer.
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
  // If the sum is exact, no big integers are needed.
  if (Number.isSafeInteger(sum)) return Math.ceil(sum / 1_000_000);
  const exact = parts.reduce((total, [tokens, perMillion]) => total + BigInt(tokens) * BigInt(perMillion), 0n);
  return Number((exact + MILLION - 1n) / MILLION);
}

function count(value: number): number {
  if (!Number.isSafeInteger(value) || value < 0) throw new RangeError('a count must be a whole number');
  return value;
}
