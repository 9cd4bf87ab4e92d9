/**
 * What one provider offers, and what of it is taken: judged when it says so, and again when the catalogue is another one. The
 * provider is told what is not taken when that is not what it was told last.
 */
import type { ModelOffer, ModelsRefused } from '@inference/protocol';
import type { JudgedOffers } from './offers.js';

export class SessionOffers {
  readonly #judge: (offers: readonly ModelOffer[]) => JudgedOffers;
  #offers: readonly ModelOffer[] = [];
  #judged: JudgedOffers = { accepted: [], refused: [] };
  #told = '[]';

  constructor(judge: ((offers: readonly ModelOffer[]) => JudgedOffers) | undefined) {
    this.#judge = judge ?? ((offers) => ({ accepted: offers, refused: [] }));
  }

  get accepted(): readonly ModelOffer[] {
    return this.#judged.accepted;
  }

  get refused(): ModelsRefused['models'] {
    return this.#judged.refused;
  }

  /** The provider's whole list from now on. */
  take(offers: readonly ModelOffer[]): void {
    this.#offers = offers;
    this.#judged = this.#judge(offers);
  }

  /** The catalogue is another one now. Whether that changed what is taken. */
  judgeAgain(): boolean {
    const before = JSON.stringify(this.accepted);
    this.take(this.#offers);
    return JSON.stringify(this.accepted) !== before;
  }

  /** What the provider is to be told, or null: it knows. */
  news(): ModelsRefused | null {
    const text = JSON.stringify(this.refused);
    if (text === this.#told) return null;
    this.#told = text;
    return { type: 'models_refused', models: this.refused };
  }
}
