/** Message with the model offers that a coordinator rejects. Sent on every change, also with an empty list. */
import Type, { type Static } from 'typebox';

/** Why an offer is rejected. Providers accept other codes too, because newer coordinators may add some. */
const MODEL_REFUSALS = [
  /** Only catalogued models are served, and this model is not catalogued. */
  'not_catalogued',
  /** The catalogue lists file hashes for this model, and the provider has not reported a hash yet. */
  'hash_missing',
  /** The provider's file matches no catalogued hash. */
  'hash_differs',
  /** The catalogue lists the model with another type, such as embedding instead of text. */
  'other_type',
] as const;
export type ModelRefusal = (typeof MODEL_REFUSALS)[number];

/** Coordinator → provider: the rejected offers. The session continues with the other offers. */
export const ModelsRefusedSchema = Type.Object({
  type: Type.Literal('models_refused'),
  models: Type.Array(
    Type.Object({
      id: Type.String({ minLength: 1, maxLength: 256 }),
      reason: Type.String({ pattern: '^[a-z0-9_]{1,64}$' }),
      /** Remedy for the owner, one or two sentences. */
      remedy: Type.String({ maxLength: 512 }),
    }),
    { maxItems: 64 },
  ),
});
export type ModelsRefused = Static<typeof ModelsRefusedSchema>;
