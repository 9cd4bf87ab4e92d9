/** Prices, and what a job costs at one. Pure: integers only, each part rounded up to a whole micro-USD. */
import { type MicroUsd, microUsd } from '../micro-usd.js';

/** What one model costs. Prices are never changed: a new one is set, and a job settles at the one it was reserved at. */
export interface Price {
  readonly id: string;
  readonly model: string;
  /** Micro-USD per million tokens. */
  readonly promptPerMillion: MicroUsd;
  readonly completionPerMillion: MicroUsd;
  /** Micro-USD per image of 1024×1024 pixels; others by their pixels, see {@link imageRates}. */
  readonly perImage: MicroUsd;
  /** Milliseconds since 1970; in force from then until the next one's. */
  readonly validFrom: number;
}

/** The rates alone: what a job keeps of the price it was reserved at. */
export type Rates = Pick<Price, 'promptPerMillion' | 'completionPerMillion' | 'perImage'>;

const MILLION = 1_000_000n;
/** Of the image that the price of a model is for. */
const PRICED_PIXELS = 1024 * 1024;

/**
 * Rates of an image job: an image costs by its pixels, rounded up to a whole micro-USD, and the words that it is made of cost
 * nothing beside it.
 */
export function imageRates({ perImage }: Rates, pixels: number): Rates {
  const scaled = Math.ceil((count(pixels) * perImage) / PRICED_PIXELS);
  return { promptPerMillion: microUsd(0), completionPerMillion: microUsd(0), perImage: microUsd(scaled) };
}

/**
 * Cost of a usage: prompt tokens, completion tokens and images each priced and rounded up by themselves, then added. So no
 * use that has a price is free, and a job costs at most 2 micro-USD more than its exact price. Throws RangeError on counts
 * that are no whole numbers, or whose cost would be no exact integer.
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
