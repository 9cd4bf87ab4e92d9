/**
 * Mean tokens per answer of each machine and model, hidden and in all, against the other machines of the model. A machine that inflates
 * its counts within what is possible stands out here. Shown to operators; nothing is held against the machine, because clients
 * choose what they ask of whom.
 */
import type { ProviderId } from '@inference/protocol';
import { BoundedMap } from '../../limits/bounded-map.js';

export interface AnswerLength {
  readonly answers: number;
  /** Means; newer answers count for more. */
  readonly hiddenTokens: number;
  readonly completionTokens: number;
}

export type LengthOutlier = 'hidden_tokens' | 'completion_tokens';

/** Figures of one machine beside the medians of all machines of the model; the medians are null while there are too few. */
export interface ComparedLength extends AnswerLength {
  readonly medianHiddenTokens: number | null;
  readonly medianCompletionTokens: number | null;
  readonly outlier: LengthOutlier | null;
}

interface ModelMedians {
  readonly at: number;
  readonly hidden: number | null;
  readonly completion: number | null;
}

/** Weight of the newest answer, once there are some. */
const NEWEST_WEIGHT = 0.02;
/** Answers after which a machine is compared. */
export const MIN_ANSWERS = 30;
/** Machines with so many answers that make a norm. */
export const MIN_PROVIDERS = 4;
/** Times the median, and tokens beside it, beyond which a machine is an outlier. */
const OUTLIER_FACTOR = 4;
const OUTLIER_TOKENS = 64;
const MAX_ENTRIES = 100_000;
const MAX_MEDIANS = 1000;
/** Time for which the norm of a model is taken as it is, in milliseconds: a list of all machines asks for it once for each. */
const MEDIANS_TTL_MS = 5000;

export class AnswerLengthStats {
  readonly #lengths = new BoundedMap<string, AnswerLength>(MAX_ENTRIES);
  readonly #norms = new BoundedMap<string, ModelMedians>(MAX_MEDIANS);
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Takes in an answer that verified. */
  add(providerId: ProviderId, model: string, tokens: Pick<AnswerLength, 'hiddenTokens' | 'completionTokens'>): void {
    const key = keyOf(providerId, model);
    const { answers, hiddenTokens, completionTokens } = this.#lengths.get(key) ?? { answers: 0, hiddenTokens: 0, completionTokens: 0 };
    const weight = Math.max(NEWEST_WEIGHT, 1 / (answers + 1));
    this.#lengths.set(key, {
      answers: answers + 1,
      hiddenTokens: hiddenTokens + weight * (tokens.hiddenTokens - hiddenTokens),
      completionTokens: completionTokens + weight * (tokens.completionTokens - completionTokens),
    });
  }

  /** A machine's figure for a model beside those of all that serve it; null before its first answer. */
  compare(providerId: ProviderId, model: string, members: () => Iterable<ProviderId>): ComparedLength | null {
    const own = this.#lengths.get(keyOf(providerId, model));
    if (own === undefined) return null;
    const { hidden, completion } = this.#norm(model, members);
    const isMeasured = own.answers >= MIN_ANSWERS;
    const outlier =
      isMeasured && isBeyond(own.hiddenTokens, hidden)
        ? 'hidden_tokens'
        : isMeasured && isBeyond(own.completionTokens, completion)
          ? 'completion_tokens'
          : null;
    return { ...own, medianHiddenTokens: hidden, medianCompletionTokens: completion, outlier };
  }

  #norm(model: string, members: () => Iterable<ProviderId>): ModelMedians {
    const at = this.#now();
    const known = this.#norms.get(model);
    if (known !== undefined && Math.abs(at - known.at) < MEDIANS_TTL_MS) return known;
    const measured: AnswerLength[] = [];
    for (const providerId of members()) {
      const length = this.#lengths.get(keyOf(providerId, model));
      if (length !== undefined && length.answers >= MIN_ANSWERS) measured.push(length);
    }
    const isEnough = measured.length >= MIN_PROVIDERS;
    const norm = {
      at,
      hidden: isEnough ? median(measured.map(({ hiddenTokens }) => hiddenTokens)) : null,
      completion: isEnough ? median(measured.map(({ completionTokens }) => completionTokens)) : null,
    };
    this.#norms.set(model, norm);
    return norm;
  }
}

function keyOf(providerId: ProviderId, model: string): string {
  return `${providerId} ${model}`;
}

function isBeyond(value: number, norm: number | null): boolean {
  return norm !== null && value > OUTLIER_FACTOR * norm + OUTLIER_TOKENS;
}

/** The lower one of the two in the middle: of four machines, two that lie together do not make the norm. */
function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? 0;
}
