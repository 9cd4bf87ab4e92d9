/**
 * `AnswerLengthStats`: mean tokens per answer of each provider and model. Shows operators which providers may inflate token counts.
 *
 * An outlier is a hint only, and has no effect on reputation.
 */
import type { ProviderId } from '@inference/protocol';
import { BoundedMap } from '@inference/scheduler/bounded-map';

interface AnswerLength {
  readonly answers: number;
  /** Moving averages, in which newer answers have more weight. */
  readonly hiddenTokens: number;
  readonly completionTokens: number;
}

type LengthOutlier = 'hidden_tokens' | 'completion_tokens';

/** Means of one provider, with the medians of the model's providers. Medians are null with too few providers. */
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

/** Minimum weight of the newest answer. Until the 50th answer, the average is a plain mean. */
const NEWEST_WEIGHT = 0.02;
/** Number of answers before a provider is compared. */
export const MIN_ANSWERS = 30;
/** Number of compared providers before a median exists. */
export const MIN_PROVIDERS = 4;
/** An outlier exceeds the median times this factor, plus this number of tokens. */
const OUTLIER_FACTOR = 4;
const OUTLIER_TOKENS = 64;
const MAX_ENTRIES = 100_000;
const MAX_MEDIANS = 1000;
/** Lifetime of a model's cached medians. Lists of all providers read them once per provider. */
const MEDIANS_TTL_MS = 5000;

export class AnswerLengthStats {
  readonly #lengths = new BoundedMap<string, AnswerLength>(MAX_ENTRIES);
  readonly #medians = new BoundedMap<string, ModelMedians>(MAX_MEDIANS);
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

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

  /** Returns the means of a provider for a model, with the medians of `members`. Null before the provider's first answer. */
  compare(providerId: ProviderId, model: string, members: () => Iterable<ProviderId>): ComparedLength | null {
    const own = this.#lengths.get(keyOf(providerId, model));
    if (own === undefined) return null;
    const { hidden, completion } = this.#computeMedians(model, members);
    const isMeasured = own.answers >= MIN_ANSWERS;
    const outlier =
      isMeasured && isBeyond(own.hiddenTokens, hidden)
        ? 'hidden_tokens'
        : isMeasured && isBeyond(own.completionTokens, completion)
          ? 'completion_tokens'
          : null;
    return { ...own, medianHiddenTokens: hidden, medianCompletionTokens: completion, outlier };
  }

  #computeMedians(model: string, members: () => Iterable<ProviderId>): ModelMedians {
    const at = this.#now();
    const known = this.#medians.get(model);
    if (known !== undefined && Math.abs(at - known.at) < MEDIANS_TTL_MS) return known;
    const measured: AnswerLength[] = [];
    for (const providerId of members()) {
      const length = this.#lengths.get(keyOf(providerId, model));
      if (length !== undefined && length.answers >= MIN_ANSWERS) measured.push(length);
    }
    const isEnough = measured.length >= MIN_PROVIDERS;
    const medians = {
      at,
      hidden: isEnough ? median(measured.map(({ hiddenTokens }) => hiddenTokens)) : null,
      completion: isEnough ? median(measured.map(({ completionTokens }) => completionTokens)) : null,
    };
    this.#medians.set(model, medians);
    return medians;
  }
}

function keyOf(providerId: ProviderId, model: string): string {
  return `${providerId} ${model}`;
}

function isBeyond(value: number, medianTokens: number | null): boolean {
  return medianTokens !== null && value > OUTLIER_FACTOR * medianTokens + OUTLIER_TOKENS;
}

/** Returns the lower median, so that two colluding providers of four cannot raise the result. */
function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? 0;
}
