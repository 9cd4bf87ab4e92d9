/**
 * What one provider offers, and what of it is taken: judged when it says so, and again when the catalogue is another one. The
 * provider is told what is not taken when that is not what it was told last.
 */
import type { ModelOffer, ModelsRefused } from '@inference/protocol';
import type { EvaluatedOffers } from './offer-policy.js';

export class SessionOffers {
  readonly #evaluate: (offers: readonly ModelOffer[]) => EvaluatedOffers;
  #offers: readonly ModelOffer[] = [];
  #evaluated: EvaluatedOffers = { accepted: [], refused: [] };
  #reported = '[]';

  constructor(judge: ((offers: readonly ModelOffer[]) => EvaluatedOffers) | undefined) {
    this.#evaluate = judge ?? ((offers) => ({ accepted: offers, refused: [] }));
  }

  get accepted(): readonly ModelOffer[] {
    return this.#evaluated.accepted;
  }

  get refused(): ModelsRefused['models'] {
    return this.#evaluated.refused;
  }

  /** The provider's whole list from now on. */
  take(offers: readonly ModelOffer[]): void {
    this.#offers = offers;
    this.#evaluated = this.#evaluate(offers);
  }

  /** The catalogue is another one now. Whether that changed what is taken. */
  reevaluate(): boolean {
    const before = JSON.stringify(this.accepted);
    this.take(this.#offers);
    return JSON.stringify(this.accepted) !== before;
  }

  /** What the provider is to be told, or null: it knows. */
  refusalMessage(): ModelsRefused | null {
    const text = JSON.stringify(this.refused);
    if (text === this.#reported) return null;
    this.#reported = text;
    return { type: 'models_refused', models: this.refused };
  }
}
