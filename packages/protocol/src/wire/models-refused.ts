/**
 * Which of a provider's models a coordinator does not take, and why. The session goes on with the others. It is told after
 * registration when there are any, and whenever the list changes, to none in the end.
 */
import Type, { type Static } from 'typebox';

/** Why a model is refused. A newer coordinator may know more. */
export const MODEL_REFUSALS = [
  /** Only models of the catalogue are served, and it does not list this one. */
  'not_catalogued',
  /** The catalogue knows the files of this model, and the provider has not told the hash of its own yet. */
  'hash_missing',
  /** The provider's file is none of those. */
  'hash_differs',
  /** The catalogue lists it for something else, such as vectors in place of text. */
  'other_type',
] as const;
export type ModelRefusal = (typeof MODEL_REFUSALS)[number];

export const ModelsRefusedSchema = Type.Object({
  type: Type.Literal('models_refused'),
  models: Type.Array(
    Type.Object({
      id: Type.String({ minLength: 1, maxLength: 256 }),
      reason: Type.String({ pattern: '^[a-z0-9_]{1,64}$' }),
      /** What the owner can do. */
      remedy: Type.String({ maxLength: 512 }),
    }),
    { maxItems: 64 },
  ),
});
export type ModelsRefused = Static<typeof ModelsRefusedSchema>;
