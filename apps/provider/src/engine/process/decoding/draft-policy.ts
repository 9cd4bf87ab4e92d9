/**
 * `DraftPolicy` chooses how many tokens to draft (guess) in speculative decoding: the length with the greatest expected gain.
 *
 * The gain is the expected number of accepted tokens, less the cost of the draft. Costs are in rounds: a round is the time to decode
 * one token without a draft.
 */

/**
 * Draft lengths to choose from. With the token before the draft, lengths from 3 fill whole tiles of four rows, which kernels compute
 * together.
 *
 * At the token limit of the stream, a draft may have another length.
 */
const LENGTHS: readonly number[] = [1, 3, 7, 11, 15, 19, 23];
/** Maximum drafted tokens per batch. `findRepeatability` tests a batch of this length plus the preceding token. */
export const MAX_DRAFT = 23;
/** Share subtracted from the expected accepted tokens, against estimation errors. */
const MARGIN = 0.1;
/** Allowance: rounds that drafts may cost more than they save. */
const FIRST_ALLOWANCE = 2;
const ALLOWANCE_PER_ROUND = 0.01;
const MAX_ALLOWANCE = 24;
/** Number of first timed rounds, while caches are cold; the fastest of them gives the round time. */
const WARM_UP_ROUNDS = 8;
/** After the warm-up, one in this many rounds without a draft is timed, because reading the CPU clock takes microseconds. */
const ROUNDS_PER_TIMING = 8;
/** Weight of a new measurement in a moving average. */
const SMOOTHING = 0.2;
/** Weight of a new observation in a hit rate, the share of correctly guessed tokens. */
const HIT_SMOOTHING = 0.1;
/** Maximum rise of an average per measurement, in rounds. A longer time is caused by other load on the machine. */
const MAX_RISE = 0.05;
/**
 * Maximum cost of a drafted token, in rounds. Some processors have a slower kernel for several rows than for one, so that a batch of
 * two costs four rounds. A longer time is caused by other load.
 */
const MAX_COST_PER_TOKEN = 4;
/** Assumed cost of a drafted token before any measurement, in rounds. */
const UNMEASURED_COST = 0.5;
/** Share by which a cost above `UNMEASURED_COST` approaches that value per timed round, so that slow lengths are tried again. */
const FORGETTING = 0.01;
/** Initial hit rates, for matches of 3, 4 to 7, 8 to 15, and 16 or more tokens. */
const FIRST_HIT_RATES: readonly number[] = [0.3, 0.6, 0.8, 0.9];

/** Measured times of batches with a single stream. Shared by the streams of a context. */
export class DraftCost {
  #roundMs = Number.POSITIVE_INFINITY;
  /** Rounds without a draft, timed or not. */
  #rounds = 0;
  #timedRounds = 0;
  /** Cost per drafted token in rounds, by the index in `LENGTHS`. Null until measured. */
  readonly #costPerToken: (number | null)[] = LENGTHS.map(() => null);

  /** Whether to time the next round without a draft. Called once per such round. */
  shouldTimeRound(): boolean {
    this.#rounds += 1;
    return this.#rounds <= WARM_UP_ROUNDS || this.#rounds % ROUNDS_PER_TIMING === 0;
  }

  addRound(ms: number): void {
    // A coarse clock may show no time.
    if (ms <= 0) return;
    this.#timedRounds += 1;
    const isWarm = this.#timedRounds > WARM_UP_ROUNDS;
    this.#roundMs = isWarm ? this.#roundMs * runningMean(1, ms / this.#roundMs) : Math.min(this.#roundMs, ms);
    for (let index = 0; index < LENGTHS.length; index++) {
      const value = this.#costPerToken[index] ?? 0;
      if (value > UNMEASURED_COST) this.#costPerToken[index] = value - FORGETTING * (value - UNMEASURED_COST);
    }
  }

  /** Records the time of a batch with a draft of `length` tokens, in milliseconds. Returns the cost of the draft, in rounds. */
  addDraft(length: number, ms: number): number {
    if (this.#timedRounds === 0) return this.expectedCost(length);
    const perToken = Math.min(MAX_COST_PER_TOKEN, Math.max(0, ms / this.#roundMs - 1) / length);
    const index = lengthIndex(length);
    this.#costPerToken[index] = runningMean(this.#expected(index), perToken);
    return perToken * length;
  }

  /** Expected cost of a draft of `length` tokens, in rounds. */
  expectedCost(length: number): number {
    return length * this.#expected(lengthIndex(length));
  }

  /** Expected cost per token, by the index in `LENGTHS`. An unmeasured length is assumed to cost no more than a shorter measured one. */
  #expected(index: number): number {
    const own = this.#costPerToken[index] ?? null;
    if (own !== null) return own;
    return Math.min(UNMEASURED_COST, index === 0 ? UNMEASURED_COST : this.#expected(index - 1));
  }
}

export class DraftPolicy {
  /** Share of correctly guessed tokens, by `rateIndex` of the matched tokens. */
  readonly #hitRates = [...FIRST_HIT_RATES];
  /** Maximum cost of the next draft. Accepted tokens raise the allowance; drafts lower it by their cost. */
  #allowance = FIRST_ALLOWANCE;

  constructor(private readonly cost: DraftCost) {}

  /** Records whether the token guessed after a match of `matched` tokens was correct, even if it was not drafted. */
  observe(matched: number, isHit: boolean): void {
    const index = rateIndex(matched);
    const old = this.#hitRates[index] as number;
    this.#hitRates[index] = old + HIT_SMOOTHING * ((isHit ? 1 : 0) - old);
  }

  /** Number of tokens to draft after a match of `matched` tokens, up to `max`; 0 if no draft is likely to save time. Called per round. */
  draftLength(matched: number, max: number): number {
    this.#allowance = Math.min(MAX_ALLOWANCE, this.#allowance + ALLOWANCE_PER_ROUND);
    let best = 0;
    let bestGain = 0;
    let accepted = 0;
    let likelihood = 1;
    for (let length = 1; length <= Math.min(max, MAX_DRAFT); length++) {
      likelihood *= this.#hitRates[rateIndex(matched + length - 1)] as number;
      accepted += likelihood;
      if (length !== max && !LENGTHS.includes(length)) continue;
      const cost = this.cost.expectedCost(length);
      const gain = accepted * (1 - MARGIN) - cost;
      if (gain <= bestGain || cost > this.#allowance) continue;
      best = length;
      bestGain = gain;
    }
    return best;
  }

  /** Records a draft that the model has checked: its accepted tokens, and the time of its batch in milliseconds. */
  addVerified(drafted: number, accepted: number, ms: number): void {
    this.#allowance += accepted - this.cost.addDraft(drafted, ms);
  }
}

function rateIndex(matched: number): number {
  return matched < 4 ? 0 : matched < 8 ? 1 : matched < 16 ? 2 : 3;
}

/** Index of the first of `LENGTHS` that is not shorter. */
function lengthIndex(length: number): number {
  return LENGTHS.findIndex((each) => each >= length);
}

function runningMean(old: number, value: number): number {
  return old + Math.min(MAX_RISE, SMOOTHING * (value - old));
}
