/** Message `models_refused`: model offers that the coordinator rejects. Sent on every change, even if the list is empty. */
import Type, { type Static } from 'typebox';

/** Reasons for rejecting an offer. Providers accept unknown codes, because newer coordinators may add some. */
const MODEL_REFUSALS = [
  /** The coordinator accepts only models of its catalogue, and this model is not among them. */
  'not_catalogued',
  /** The catalogue requires a file hash for this model, and the provider has not reported one yet. */
  'hash_missing',
  /** The reported file hash matches none in the catalogue. */
  'hash_differs',
  /** The catalogue has a different type for the model, such as embedding instead of text. */
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
