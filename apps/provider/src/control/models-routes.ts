/** Route `POST /v1/models/reload`: makes the daemon serve the models that the owner has selected. */

import { lazyValidator } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import { type ControlRoute, post } from './route.js';

export const MODELS_PATH = '/v1/models/reload';

const ModelsChangeSchema = Type.Object({
  /** Ids of the served models. */
  models: Type.Array(Type.String()),
  /** Selected models that are not served, each with a sentence for the owner. */
  refused: Type.Array(Type.Object({ path: Type.String(), reason: Type.String() })),
});
export type ModelsChange = Static<typeof ModelsChangeSchema>;

const changeValidator = lazyValidator(ModelsChangeSchema);
export const isModelsChange = (value: unknown): value is ModelsChange => changeValidator().Check(value);

/** If `reload` throws a ControlRefusal, nothing has changed. */
export function modelsRoutes(reload: () => ModelsChange): ControlRoute[] {
  return [post(MODELS_PATH, Type.Object({}, { additionalProperties: false }), async () => reload())];
}
