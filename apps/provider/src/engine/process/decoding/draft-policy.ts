/**
 * `DraftPolicy` chooses how many tokens to draft: as many as maximise the expected accepted tokens less the measured cost.
 *
 * Pure: observations and times in, a length out. Times count in rounds, the time of one token without a draft.
 */

/**
 * Lengths of drafts. With the token before, they fill tiles of four rows, in which kernels compute; a row more begins another tile.
 *
 * A draft may end earlier, at the limit of the stream.
 */
const LENGTHS: readonly number[] = [1, 3, 7, 11, 15, 19, 23];
/** Maximum drafted tokens per batch. `findRepeatability` compares a batch of so many and the token before. */
export const MAX_DRAFT = 23;
/** Share of the expected acceptances that a draft must gain; covers errors of the estimates. */
const MARGIN = 0.1;
/** Rounds that the drafts of a stream may lose at its start. */
const FIRST_ALLOWANCE = 2;
/** Rounds that the drafts of a stream may lose per round. */
const ALLOWANCE_PER_ROUND = 0.01;
const MAX_ALLOWANCE = 24;
/** The first rounds of a context; caches are cold, so the fastest counts. */
const WARM_UP_ROUNDS = 8;
/** Later, one in so many rounds is timed: reading the processor's clock takes microseconds. */
const ROUNDS_PER_TIMING = 8;
/** Share of a new measurement in a running mean. */
const SMOOTHING = 0.2;
/** Share of a new observation in a hit rate. */
const HIT_SMOOTHING = 0.1;
/** Maximum rise of a mean by one measurement, as a share of a round: a longer time is other load on the machine. */
const MAX_RISE = 0.05;
/** Time of a drafted token before any is measured, in rounds. */
const UNMEASURED = 0.5;
/** Share by which a longer time returns to `UNMEASURED` per timed round, so that lengths that were once slow are tried again. */
const FORGETTING = 0.01;
/** Hit rates of a new stream, for matches of 3, up to 7, up to 15 and more tokens. */
const FIRST_HIT_RATES: readonly number[] = [0.3, 0.6, 0.8, 0.9];

/** Measured times of batches with a single stream, shared by the streams of a context. */
export class DraftCost {
  #roundMs = Number.POSITIVE_INFINITY;
  #rounds = 0;
  #timedRounds = 0;
  /** Time per drafted token in rounds, by the index in `LENGTHS`; null: not measured. */
  readonly #perToken: (number | null)[] = LENGTHS.map(() => null);

  /** Whether to time the next round without a draft. Called once per such round. */
  shouldTimeRound(): boolean {
    this.#rounds += 1;
    return this.#rounds <= WARM_UP_ROUNDS || this.#rounds % ROUNDS_PER_TIMING === 0;
  }

  /** A round without a draft took this time, in milliseconds. */
  addRound(ms: number): void {
    // A coarse clock may show no time.
    if (ms <= 0) return;
    this.#timedRounds += 1;
    const isWarm = this.#timedRounds > WARM_UP_ROUNDS;
    this.#roundMs = isWarm ? this.#roundMs * runningMean(1, ms / this.#roundMs) : Math.min(this.#roundMs, ms);
    for (let index = 0; index < LENGTHS.length; index++) {
      const value = this.#perToken[index] ?? 0;
      if (value > UNMEASURED) this.#perToken[index] = value - FORGETTING * (value - UNMEASURED);
    }
  }

  /** A round with a draft took this time, in milliseconds. Returns the extra time, in rounds. */
  addDraft(length: number, ms: number): number {
    if (this.#timedRounds === 0) return this.extra(length);
    // A drafted token never takes longer than a round of its own.
    const perToken = Math.min(1, Math.max(0, ms / this.#roundMs - 1) / length);
    const index = indexOf(length);
    this.#perToken[index] = runningMean(this.#expected(index), perToken);
    return perToken * length;
  }

  /** Expected extra time of a round with a draft, in rounds. */
  extra(length: number): number {
    return length * this.#expected(indexOf(length));
  }

  /** A length that is not measured takes no longer per token than the next shorter one that is. */
  #expected(index: number): number {
    const own = this.#perToken[index] ?? null;
    if (own !== null) return own;
    return Math.min(UNMEASURED, index === 0 ? UNMEASURED : this.#expected(index - 1));
  }
}

export class DraftPolicy {
  /** Share of predicted tokens that came true, by the length of the match. */
  readonly #hitRates = [...FIRST_HIT_RATES];
  /** Rounds that drafts may still lose. */
  #allowance = FIRST_ALLOWANCE;

  constructor(private readonly cost: DraftCost) {}

  /** The token predicted after a match of `matched` tokens came true or not, drafted or not. */
  observe(matched: number, isHit: boolean): void {
    const index = rateIndex(matched);
    const old = this.#hitRates[index] as number;
    this.#hitRates[index] = old + HIT_SMOOTHING * ((isHit ? 1 : 0) - old);
  }

  /** Number of tokens to draft in this round after a match of `matched` tokens, up to `max`; 0 if no draft is likely to save time. */
  draftLength(matched: number, max: number): number {
    this.#allowance = Math.min(MAX_ALLOWANCE, this.#allowance + ALLOWANCE_PER_ROUND);
    let best = 0;
    let bestGain = 0;
    let accepted = 0;
    let likelihood = 1;
    for (let length = 1; length <= Math.min(max, MAX_DRAFT); length++) {
      likelihood *= this.#hitRates[rateIndex(matched + length - 1)] as number;
      accepted += likelihood;
      const isUsed = length === max || LENGTHS.includes(length);
      if (!isUsed) continue;
      const extra = this.cost.extra(length);
      const gain = accepted * (1 - MARGIN) - extra;
      if (gain <= bestGain || extra > this.#allowance) continue;
      best = length;
      bestGain = gain;
    }
    return best;
  }

  /** Reports a verified draft: how many of its tokens were accepted, and the time of its batch in milliseconds. */
  verified(drafted: number, accepted: number, ms: number): void {
    this.#allowance += accepted - this.cost.addDraft(drafted, ms);
  }
}

function rateIndex(matched: number): number {
  return matched < 4 ? 0 : matched < 8 ? 1 : matched < 16 ? 2 : 3;
}

/** Index of the first of `LENGTHS` that is not shorter. */
function indexOf(length: number): number {
  return LENGTHS.findIndex((each) => each >= length);
}

function runningMean(old: number, value: number): number {
  return old + Math.min(MAX_RISE, SMOOTHING * (value - old));
}
