/** Mean tokens per answer of each provider and model, to find inflated counts. For operators: outliers are no fault. */
import type { ProviderId } from '@inference/protocol';
import { BoundedMap } from '@inference/scheduler/bounded-map';

interface AnswerLength {
  readonly answers: number;
  /** Means; newer answers count for more. */
  readonly hiddenTokens: number;
  readonly completionTokens: number;
}

type LengthOutlier = 'hidden_tokens' | 'completion_tokens';

/** Means of one provider beside the medians of the model's providers. Medians are null below the minimum number of providers. */
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

/** Weight of the newest answer, after the first answers. */
const NEWEST_WEIGHT = 0.02;
/** Answers before a provider is compared. */
export const MIN_ANSWERS = 30;
/** Providers with enough answers before a median exists. */
export const MIN_PROVIDERS = 4;
/** Factor and offset of the outlier bound: factor times the median, plus the offset in tokens. */
const OUTLIER_FACTOR = 4;
const OUTLIER_TOKENS = 64;
const MAX_ENTRIES = 100_000;
const MAX_MEDIANS = 1000;
/** Lifetime of the cached medians of a model, in milliseconds: a list of all providers asks once per provider. */
const MEDIANS_TTL_MS = 5000;

export class AnswerLengthStats {
  readonly #lengths = new BoundedMap<string, AnswerLength>(MAX_ENTRIES);
  readonly #norms = new BoundedMap<string, ModelMedians>(MAX_MEDIANS);
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Adds a verified answer. */
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

  /** Means of a provider for a model beside the medians of all `members`; null before the provider's first answer. */
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

/** The lower of the two middle values: of four providers, two equal providers must not determine the median. */
function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? 0;
}
