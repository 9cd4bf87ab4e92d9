/**
 * `SessionOffers`: model offers of one session, accepted or rejected by the catalogue. Part of `ProviderSession`.
 *
 * Offers are evaluated on arrival and when the catalogue (the operator's list of models) changes.
 */
import type { ModelOffer, ModelRefusal, ModelsRefused } from '@inference/protocol';

interface CatalogueTerms {
  readonly displayName: string;
  readonly quantization: string;
  readonly modelType: ModelOffer['model_type'];
  /** SHA-256 of the permitted files. Empty: any file. */
  readonly fileSha256: readonly string[];
}

interface OfferRules {
  readonly catalogue: ReadonlyMap<string, CatalogueTerms>;
  /** Whether models outside the catalogue are rejected. */
  readonly onlyCatalogued: boolean;
}

export interface EvaluatedOffers {
  readonly accepted: readonly ModelOffer[];
  readonly refused: ModelsRefused['models'];
}

const REMEDIES: Readonly<Record<ModelRefusal, string>> = {
  not_catalogued: 'This network serves only models of its catalog. Choose a model that GET /v1/catalogue lists.',
  hash_missing: 'The hash of the file is not reported yet. Wait until the provider has computed it.',
  hash_differs: 'The file differs from the files in the catalog. Pull the model again, or serve the file under another id.',
  other_type: 'The catalog lists this id with another model type. Serve the model under another id.',
};

/** Accepts or rejects each offer. Accepted offers of catalogued models get the display name and quantization of the catalogue. */
export function evaluateOffers(offers: readonly ModelOffer[], rules: OfferRules): EvaluatedOffers {
  const accepted: ModelOffer[] = [];
  const refused: ModelsRefused['models'] = [];
  for (const offer of offers) {
    const terms = rules.catalogue.get(offer.id);
    const reason = refusalOf(offer, terms, rules);
    if (reason !== null) refused.push({ id: offer.id, reason, remedy: REMEDIES[reason] });
    else if (terms === undefined) accepted.push(offer);
    else accepted.push({ ...offer, display_name: terms.displayName, quantization: terms.quantization });
  }
  return { accepted, refused };
}

function refusalOf(offer: ModelOffer, terms: CatalogueTerms | undefined, { onlyCatalogued }: OfferRules): ModelRefusal | null {
  if (terms === undefined) return onlyCatalogued ? 'not_catalogued' : null;
  if (terms.modelType !== offer.model_type) return 'other_type';
  if (terms.fileSha256.length === 0) return null;
  if (offer.file_sha256 === undefined) return 'hash_missing';
  return terms.fileSha256.includes(offer.file_sha256) ? null : 'hash_differs';
}

export class SessionOffers {
  readonly #evaluate: (offers: readonly ModelOffer[]) => EvaluatedOffers;
  #offers: readonly ModelOffer[] = [];
  #evaluated: EvaluatedOffers = { accepted: [], refused: [] };
  /** JSON of the rejected offers in the last message. */
  #reported = '[]';

  constructor(evaluate: ((offers: readonly ModelOffer[]) => EvaluatedOffers) | undefined) {
    this.#evaluate = evaluate ?? ((offers) => ({ accepted: offers, refused: [] }));
  }

  get accepted(): readonly ModelOffer[] {
    return this.#evaluated.accepted;
  }

  get refused(): ModelsRefused['models'] {
    return this.#evaluated.refused;
  }

  /** Replaces all offers of the provider. Of several offers with one id, the first counts. */
  take(offers: readonly ModelOffer[]): void {
    const ids = new Set<string>();
    this.#offers = offers.filter(({ id }) => ids.size < ids.add(id).size);
    this.#evaluated = this.#evaluate(this.#offers);
  }

  /** Evaluates the offers again, after the catalogue changed. Returns whether the accepted offers changed. */
  reevaluate(): boolean {
    const before = JSON.stringify(this.accepted);
    this.take(this.#offers);
    return JSON.stringify(this.accepted) !== before;
  }

  /** Message with the rejected offers. Null: unchanged since the last message. */
  refusalMessage(): ModelsRefused | null {
    const text = JSON.stringify(this.refused);
    if (text === this.#reported) return null;
    this.#reported = text;
    return { type: 'models_refused', models: this.refused };
  }
}
