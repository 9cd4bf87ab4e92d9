/** `Price` of a model and the cost of a job. Pure, integers only; each part is rounded up to a whole micro-USD. */
import { type MicroUsd, microUsd } from '../micro-usd.js';

/** Price of a model. Immutable: a change sets a new price, and a job settles at the price of its reservation. */
export interface Price {
  readonly id: string;
  readonly model: string;
  /** Micro-USD per million tokens. */
  readonly promptPerMillion: MicroUsd;
  readonly completionPerMillion: MicroUsd;
  /** Micro-USD per image of 1024×1024 pixels. Other sizes by pixels, see {@link imageRates}. */
  readonly perImage: MicroUsd;
  /** Milliseconds since 1970. Valid until the `validFrom` of the next price. */
  readonly validFrom: number;
}

/** Rates of a price, as copied into a reservation. */
export type Rates = Pick<Price, 'promptPerMillion' | 'completionPerMillion' | 'perImage'>;

const MILLION = 1_000_000n;
/** Pixels of the image size that `perImage` applies to. */
const PRICED_PIXELS = 1024 * 1024;

/** Rates of an image job: `perImage` scaled by pixels, rounded up to a whole micro-USD. Tokens of an image prompt are free. */
export function imageRates({ perImage }: Rates, pixels: number): Rates {
  const scaled = Math.ceil((count(pixels) * perImage) / PRICED_PIXELS);
  return { promptPerMillion: microUsd(0), completionPerMillion: microUsd(0), perImage: microUsd(scaled) };
}

/**
 * Cost of a usage: prompt tokens, completion tokens and images, each priced and rounded up, then added.
 *
 * No priced usage is free, and a job costs at most 2 micro-USD more than its exact price. Throws RangeError for counts that are no
 * whole numbers, or for a cost beyond exact integers.
 */
export function costOf(price: Rates, usage: { promptTokens: number; completionTokens: number; images?: number }): MicroUsd {
  const prompt = partCost(usage.promptTokens, price.promptPerMillion);
  const completion = partCost(usage.completionTokens, price.completionPerMillion);
  const images = count(usage.images ?? 0) * price.perImage;
  return microUsd(prompt + completion + images);
}

function partCost(tokens: number, perMillion: MicroUsd): number {
  const product = count(tokens) * perMillion;
  // The usual case, without big integers: an exact product rounds up exactly.
  if (Number.isSafeInteger(product)) return Math.ceil(product / 1_000_000);
  return Number((BigInt(tokens) * BigInt(perMillion) + MILLION - 1n) / MILLION);
}

function count(value: number): number {
  if (!Number.isSafeInteger(value) || value < 0) throw new RangeError('a count must be a whole number');
  return value;
}
