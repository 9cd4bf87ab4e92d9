/**
 * `RefusalRates` compares the share of a model's jobs that a provider refuses with the share that the model's other providers refuse.
 *
 * `RefusalTracker` reports the refusals, which are failures that blame the client. Counts decay with a half-life of ten minutes.
 */
import type { ProviderId } from '@inference/protocol';
import { BoundedMap } from '@inference/scheduler/bounded-map';

interface Counts {
  refused: number;
  answered: number;
  decayedAt: number;
}

const HALF_LIFE_MS = 10 * 60_000;
const MAX_MODELS = 5000;
const MAX_PROVIDER_MODELS = 50_000;
/** Below this number, refusals are never frequent. */
const MIN_REFUSALS = 4;
/** Up to this share of the provider's jobs, refusals are never frequent. */
const MIN_SHARE = 0.2;
/** Above this multiple of the other providers' share, refusals are frequent. */
const MAX_RATIO = 4;
/** Above this share, refusals are frequent, whatever the other providers do. */
const MAX_SHARE = 0.9;

export class RefusalRates {
  readonly #now: () => number;
  /** Counts of all providers together. Key: model. */
  readonly #models = new BoundedMap<string, Counts>(MAX_MODELS);
  /** Key: provider and model. */
  readonly #providerModels = new BoundedMap<string, Counts>(MAX_PROVIDER_MODELS);

  constructor(now: () => number) {
    this.#now = now;
  }

  refused(model: string, providerId: ProviderId): void {
    this.#add(model, providerId, 'refused');
  }

  answered(model: string, providerId: ProviderId): void {
    this.#add(model, providerId, 'answered');
  }

  /** Whether the provider refuses a much larger share of its jobs than the model's other providers, and more than `minShare`. */
  isFrequent(model: string, providerId: ProviderId, minShare = MIN_SHARE): boolean {
    const own = this.#read(this.#providerModels, keyOf(model, providerId));
    const all = this.#read(this.#models, model);
    const others = { refused: Math.max(0, all.refused - own.refused), answered: Math.max(0, all.answered - own.answered) };
    // Laplace smoothing (one refused and one answered job are added), so that few answers have little weight.
    const rateOfOthers = (others.refused + 1) / (others.refused + others.answered + 2);
    const rate = own.refused / (own.refused + own.answered);
    return Math.round(own.refused) >= MIN_REFUSALS && rate > Math.max(minShare, Math.min(MAX_SHARE, MAX_RATIO * rateOfOthers));
  }

  #add(model: string, providerId: ProviderId, what: 'refused' | 'answered'): void {
    const entries = [
      [this.#providerModels, keyOf(model, providerId)],
      [this.#models, model],
    ] as const;
    for (const [counts, key] of entries) {
      const known = this.#read(counts, key);
      counts.set(key, { ...known, [what]: known[what] + 1 });
    }
  }

  #read(counts: ReadonlyMap<string, Counts>, key: string): Counts {
    const now = this.#now();
    const known = counts.get(key);
    if (known === undefined) return { refused: 0, answered: 0, decayedAt: now };
    const left = 0.5 ** (Math.max(0, now - known.decayedAt) / HALF_LIFE_MS);
    return { refused: known.refused * left, answered: known.answered * left, decayedAt: now };
  }
}

function keyOf(model: string, providerId: ProviderId): string {
  return `${providerId} ${model}`;
}
