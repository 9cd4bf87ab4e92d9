/**
 * `SlicePolicy` chooses how many prompt tokens a batch reads while other streams generate, from the measured times of earlier slices.
 *
 * The time per token depends on the context before the slice and on the size of the slice. On a CPU, ggml (llama.cpp's tensor library)
 * computes attention row by row below 64 rows, and from there on in tiles of 64 rows, at a quarter of the time per row. A GPU takes about
 * as long for a few tokens as for many. A row is the computation of one token.
 */

/** Rows of a tile (`GGML_FA_TILE_Q`). From this many rows on, ggml's CPU backend computes attention in tiles and rounds differently. */
export const TILE_ROWS = 64;
/** Tokens of the first slice, before any measurement. */
const FIRST_SLICE = 16;
/** Slices are measured in classes by size; these are the smallest sizes. On a CPU, further tiles take as long per row as the first. */
const TILED_CLASSES: readonly number[] = [1, FIRST_SLICE, TILE_ROWS];
const UNTILED_CLASSES: readonly number[] = [...TILED_CLASSES, 4 * TILE_ROWS];
/** End of the first range of contexts, in tokens. Each further range ends at twice the length. */
const FIRST_RANGE = 2048;
/** Minimum factor by which the time per row grows from range to range on a CPU, where long contexts are mostly attention. */
const MIN_GROWTH = 1.5;
/** Weight of a new measurement that is longer than the previous ones. */
const RISE_SMOOTHING = 0.5;
/** Weight of a new measurement that is shorter, which other load on the machine cannot cause. */
const FALL_SMOOTHING = 0.7;
/** Maximum factor by which a time rises per measurement. A longer time is caused by other load on the machine. */
const MAX_RISE = 1.5;
/** Share by which the times of the other classes fall towards their `#minimum` per measurement, so that a slow class is tried again. */
const FORGETTING = 0.005;
/** A smaller slice is preferred only below this share of the cost of a larger one, because each batch also has a fixed cost. */
const MAX_SHARE_OF_LARGER = 0.8;
/** A slice within the time limit is chosen up to this multiple of the cost of the best slice beyond the limit. */
const MAX_COST_RATIO = 8;

interface SliceRequest {
  /** Tokens before the slice. */
  readonly context: number;
  readonly minTokens: number;
  readonly maxTokens: number;
  readonly limitMs: number;
}

interface Candidate {
  readonly tokens: number;
  readonly ms: number;
  /** Milliseconds per token, multiplied by the ratio of the slice's time to its limit if the slice exceeds the limit. */
  readonly cost: number;
}

export class SlicePolicy {
  /** Milliseconds per row, by `rangeOf` the context and index of the class. Undefined until measured. */
  readonly #msPerRow: (number | undefined)[][] = [];
  readonly #classes: readonly number[];

  /** @param isTiled Whether attention is computed in tiles, of which the last takes as long as a full one: on a CPU. */
  constructor(private readonly isTiled: boolean) {
    this.#classes = isTiled ? TILED_CLASSES : UNTILED_CLASSES;
  }

  /** Records the time of a slice, in milliseconds. */
  add(context: number, tokens: number, ms: number): void {
    const range = rangeOf(context);
    const measured = this.#msPerRow[range] ?? [];
    this.#msPerRow[range] = measured;
    const index = this.#classes.findLastIndex((size) => size <= tokens);
    measured[index] = smoothed(measured[index], ms / this.#rows(tokens));
    for (const [other, time] of measured.entries()) {
      if (other === index || time === undefined) continue;
      const min = this.#minimum(range, other) ?? time;
      if (time > min) measured[other] = time - FORGETTING * (time - min);
    }
  }

  /** Number of tokens of the next slice: usually a size within the time limit, or else the size with the lowest cost. */
  choose(request: SliceRequest): number {
    let within: Candidate | undefined;
    let beyond: Candidate | undefined;
    for (let index = this.#classes.length - 1; index >= 0; index--) {
      const candidate = this.#candidate(index, request);
      if (candidate === undefined) continue;
      if (candidate.ms <= request.limitMs) within = better(within, candidate);
      // A slice of the smallest class is chosen only for its short time: a larger one costs less per token.
      else if (index > 0) beyond = better(beyond, candidate);
    }
    const best = within !== undefined && (beyond === undefined || within.cost <= MAX_COST_RATIO * beyond.cost) ? within : beyond;
    return best?.tokens ?? Math.max(request.minTokens, Math.min(request.maxTokens, FIRST_SLICE));
  }

  /** The largest slice of a class within the limit, or else the smallest of the class. Undefined without an estimate or a fitting size. */
  #candidate(index: number, { context, minTokens, maxTokens, limitMs }: SliceRequest): Candidate | undefined {
    const first = Math.max(minTokens, this.#classes[index] as number);
    const last = Math.min(maxTokens, (this.#classes[index + 1] ?? Number.POSITIVE_INFINITY) - 1);
    const perRow = this.#estimate(rangeOf(context), index);
    if (perRow === undefined || first > last) return undefined;
    const rows = limitMs / perRow;
    const isRest = last === maxTokens && this.#rows(last) <= rows;
    const tokens = Math.max(first, isRest ? last : this.#wholeTiles(Math.min(last, Math.floor(rows))));
    const ms = perRow * this.#rows(tokens);
    return { tokens, ms, cost: (ms / tokens) * Math.max(1, ms / limitMs) };
  }

  /** Rows whose time a slice takes: whole tiles on a CPU. */
  #rows(tokens: number): number {
    return !this.isTiled || tokens < TILE_ROWS ? tokens : TILE_ROWS * Math.ceil(tokens / TILE_ROWS);
  }

  #wholeTiles(tokens: number): number {
    return !this.isTiled || tokens < TILE_ROWS ? tokens : tokens - (tokens % TILE_ROWS);
  }

  /** Milliseconds per row. An unmeasured class is expected to take its minimum, so that it is tried. */
  #estimate(range: number, index: number): number | undefined {
    const own = this.#msPerRow[range] ?? [];
    return own[index] ?? this.#minimum(range, index) ?? own.findLast((time, other) => other < index && time !== undefined);
  }

  /** Minimum milliseconds per row, from the times of the same class in shorter contexts and of a larger class. */
  #minimum(range: number, index: number): number | undefined {
    const measuredIn = this.#msPerRow.slice(0, range).findLastIndex((times) => times?.[index] !== undefined);
    const shorter = this.#msPerRow[measuredIn]?.[index];
    const larger = this.#msPerRow[range]?.find((time, other) => other > index && time !== undefined);
    if (shorter === undefined) return larger;
    return Math.max(shorter * (this.isTiled ? MIN_GROWTH ** (range - measuredIn - 1) : 1), larger ?? 0);
  }
}

function smoothed(old: number | undefined, value: number): number {
  if (old === undefined) return value;
  return value < old ? old + FALL_SMOOTHING * (value - old) : Math.min(MAX_RISE * old, old + RISE_SMOOTHING * (value - old));
}

function rangeOf(context: number): number {
  return Math.max(0, Math.floor(Math.log2(context / FIRST_RANGE)) + 1);
}

/** The smaller of two candidates if its cost is clearly lower. */
function better(larger: Candidate | undefined, smaller: Candidate): Candidate {
  return larger === undefined || smaller.cost < MAX_SHARE_OF_LARGER * larger.cost ? smaller : larger;
}
