/**
 * `ModelPerformance`: histograms of response times and speeds per model at this coordinator, over the last 24 to 28 hours.
 *
 * `networkPerformance` merges the histograms of all coordinators and computes percentiles for the models pages.
 */
import { PERFORMANCE_HOURS, type Percentiles } from '@inference/formats';
import { BoundedMap } from '@inference/scheduler/bounded-map';
import Type, { type Static } from 'typebox';

/** Buckets are logarithmic. The middle of a bucket is within 5 percent of its values. */
const BUCKETS_PER_DOUBLING = 8;
/** Buckets for values from 1 to 2^20. */
const BUCKET_COUNT = 20 * BUCKETS_PER_DOUBLING;
/** A histogram consists of slices of this length. A new slice replaces the oldest. */
const SLICE_HOURS = 4;
const SLICE_MS = SLICE_HOURS * 3_600_000;
/** Slices of the whole period, plus the incomplete one. */
const SLICE_COUNT = PERFORMANCE_HOURS / SLICE_HOURS + 1;
/** Bounds the memory. A model takes up to 14 kB. */
const MAX_MODELS = 512;
/** Minimum output tokens for a speed. Shorter answers measure the network more than the model. */
const MIN_DECODED_TOKENS = 16;
/** Speeds are counted in tenths of a token per second, because the lowest bucket starts at 1. */
const SPEED_UNITS_PER_TPS = 10;

const METRICS = ['first_token_ms', 'tokens_per_second', 'duration_ms'] as const;
type Metric = (typeof METRICS)[number];

/** Times of a settled request. Not recorded if the client read too slowly. */
export interface AnswerTimes {
  readonly model: string;
  /** From the request to the first content of a stream; null: not a stream. */
  readonly firstTokenMs: number | null;
  /** From the request to the complete response. */
  readonly durationMs: number;
  /** Visible output tokens after the first content; null: unknown. */
  readonly decodedTokens: number | null;
}

/** Pairs of bucket number and count, without empty buckets. */
const BucketCountsSchema = Type.Array(Type.Tuple([Type.Integer({ minimum: 0, maximum: BUCKET_COUNT - 1 }), Type.Integer({ minimum: 1 })]), {
  maxItems: BUCKET_COUNT,
});
type BucketCounts = Static<typeof BucketCountsSchema>;

/** Histograms of all models of one coordinator, as sent to peers. */
export const PerformancePartSchema = Type.Array(
  Type.Object({
    id: Type.String({ maxLength: 512 }),
    first_token_ms: BucketCountsSchema,
    tokens_per_second: BucketCountsSchema,
    duration_ms: BucketCountsSchema,
  }),
  { maxItems: MAX_MODELS },
);
export type PerformancePart = Static<typeof PerformancePartSchema>;

export type ModelPercentiles = Readonly<Record<Metric, Percentiles | null>>;
export const NOT_MEASURED: ModelPercentiles = { first_token_ms: null, tokens_per_second: null, duration_ms: null };

export class ModelPerformance {
  readonly #now: () => number;
  readonly #models = new BoundedMap<string, Record<Metric, RecentHistogram>>(MAX_MODELS);

  constructor(now: () => number) {
    this.#now = now;
  }

  add({ model, firstTokenMs, durationMs, decodedTokens }: AnswerTimes): void {
    const slice = this.#slice();
    const histograms = this.#models.get(model) ?? {
      first_token_ms: new RecentHistogram(),
      tokens_per_second: new RecentHistogram(),
      duration_ms: new RecentHistogram(),
    };
    // Reinserts the model as the newest, so that it is evicted last.
    this.#models.set(model, histograms);
    // Durations are compared only among answers that were not streamed.
    if (firstTokenMs === null) {
      histograms.duration_ms.add(durationMs, slice);
      return;
    }
    histograms.first_token_ms.add(firstTokenMs, slice);
    const decodeMs = durationMs - firstTokenMs;
    if (decodedTokens === null || decodedTokens < MIN_DECODED_TOKENS || decodeMs <= 0) return;
    histograms.tokens_per_second.add((SPEED_UNITS_PER_TPS * 1000 * decodedTokens) / decodeMs, slice);
  }

  /** Histograms of this coordinator. */
  part(): PerformancePart {
    const slice = this.#slice();
    return [...this.#models].map(([id, histograms]) => ({
      id,
      first_token_ms: histograms.first_token_ms.counts(slice),
      tokens_per_second: histograms.tokens_per_second.counts(slice),
      duration_ms: histograms.duration_ms.counts(slice),
    }));
  }

  /** Number of the current slice, counted from 1970. */
  #slice(): number {
    return Math.floor(this.#now() / SLICE_MS);
  }
}

/** Percentiles per model, over the histograms of all coordinators. */
export function networkPerformance(parts: readonly PerformancePart[]): ReadonlyMap<string, ModelPercentiles> {
  const models = new Map<string, PerformancePart>();
  for (const part of parts.flat()) models.set(part.id, [...(models.get(part.id) ?? []), part]);
  return new Map(
    Array.from(models, ([id, parts]) => [
      id,
      {
        first_token_ms: percentiles(parts.map(({ first_token_ms }) => first_token_ms)),
        tokens_per_second: percentiles(
          parts.map(({ tokens_per_second }) => tokens_per_second),
          SPEED_UNITS_PER_TPS,
        ),
        duration_ms: percentiles(parts.map(({ duration_ms }) => duration_ms)),
      },
    ]),
  );
}

/** Percentiles over several histograms. `scale`: counted units per unit of the result. */
function percentiles(parts: readonly BucketCounts[], scale = 1): Percentiles | null {
  const buckets = new Map<number, number>();
  for (const [bucket, count] of parts.flat()) buckets.set(bucket, (buckets.get(bucket) ?? 0) + count);
  const sorted = [...buckets].sort(([a], [b]) => a - b);
  const requests = sorted.reduce((sum, [, count]) => sum + count, 0);
  if (requests === 0) return null;
  const at = (share: number): number => {
    let below = 0;
    for (const [bucket, count] of sorted) {
      below += count;
      if (below >= share * requests) return Number((middleOf(bucket) / scale).toPrecision(3));
    }
    return 0;
  };
  return { p5: at(0.05), p50: at(0.5), p95: at(0.95), requests };
}

function bucketOf(value: number): number {
  return Math.min(BUCKET_COUNT - 1, Math.floor(BUCKETS_PER_DOUBLING * Math.log2(Math.max(1, value))));
}

/** Geometric mean of a bucket's bounds. */
function middleOf(bucket: number): number {
  return 2 ** ((bucket + 0.5) / BUCKETS_PER_DOUBLING);
}

/** Histogram of one metric of a model, in slices of some hours. */
class RecentHistogram {
  readonly #slices = new Map<number, Uint32Array>();

  add(value: number, slice: number): void {
    let counts = this.#slices.get(slice);
    if (counts === undefined) {
      this.#dropOld(slice);
      counts = new Uint32Array(BUCKET_COUNT);
      this.#slices.set(slice, counts);
    }
    const bucket = bucketOf(value);
    counts[bucket] = (counts[bucket] ?? 0) + 1;
  }

  /** Sums over all slices that have not expired at `slice`. */
  counts(slice: number): BucketCounts {
    this.#dropOld(slice);
    const sums = new Uint32Array(BUCKET_COUNT);
    for (const counts of this.#slices.values()) for (const [bucket, count] of counts.entries()) sums[bucket] = (sums[bucket] ?? 0) + count;
    return [...sums.entries()].filter(([, count]) => count > 0);
  }

  /** Drops expired slices, and future ones, which exist after the clock was set back. */
  #dropOld(slice: number): void {
    for (const old of this.#slices.keys()) if (old <= slice - SLICE_COUNT || old > slice) this.#slices.delete(old);
  }
}
