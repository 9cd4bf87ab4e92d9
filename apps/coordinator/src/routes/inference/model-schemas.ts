/** Schemas of the model lists. A query parameter's description completes the error message "<name> must be <description>". */
import { ModelStatisticsSchema } from '@inference/formats';
import Type, { type TProperties } from 'typebox';
import { MAX_LISTED_MODELS } from '../../providers/placement/listed-models.js';
import { OPEN_ROUTER_MEMBERS, tokensOrNull } from './open-router-members.js';

export const ModelListQuerySchema = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_LISTED_MODELS, description: `an integer from 1 to ${MAX_LISTED_MODELS}` })),
  after_id: Type.Optional(Type.String({ minLength: 1, maxLength: 512, description: 'the id of a model' })),
  before_id: Type.Optional(Type.String({ minLength: 1, maxLength: 512, description: 'the id of a model' })),
});
const count = Type.Integer({ minimum: 0 });
const trustLevel = Type.Union([Type.Literal('self_signed'), Type.Literal('hardware')]);
const stringProperties = (...names: readonly string[]): TProperties => Object.fromEntries(names.map((name) => [name, Type.String()]));

const Model = Type.Object({
  id: Type.String(),
  object: Type.Literal('model'),
  created: Type.Integer({ description: 'Seconds since 1970.' }),
  owned_by: Type.String(),
  context_length: Type.Optional(
    tokensOrNull('Maximum tokens of prompt and output together, over the providers that serve the model now. Absent for image models.'),
  ),
  max_output_tokens: Type.Optional(tokensOrNull('Maximum output tokens, as far as the prompt leaves room. Absent for image models.')),
  ...OPEN_ROUTER_MEMBERS,
  metadata: Type.Object({
    ...stringProperties('model_type', 'quantization', 'display_name'),
    provider_count: count,
    attested_providers: count,
    hardware_providers: Type.Optional(Type.Integer({ minimum: 0, description: 'Part of `provider_count` with trust level hardware.' })),
    trust_level: trustLevel,
    weights: Type.Optional(
      Type.Array(Type.Object({ sha256: Type.String(), provider_count: count }), {
        description: 'SHA-256 of the weights that providers report for the model, at most 8, each with the number of providers.',
      }),
    ),
    slots: Type.Optional(
      Type.Integer({ minimum: 0, description: 'Concurrent requests of all providers of the model. Only in responses for one model.' }),
    ),
    requests_last_5_minutes: Type.Optional(Type.Integer({ minimum: 0, description: 'Only in responses for one model.' })),
    waiting_requests: Type.Optional(
      Type.Integer({ minimum: 0, description: 'Length of the request queue. Only in responses for one model.' }),
    ),
    expected_wait_ms: Type.Optional(
      Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
        description: 'Expected queue time of a new request; null if unknown. Only in responses for one model.',
      }),
    ),
    hardware_slots: Type.Optional(
      Type.Integer({ minimum: 0, description: 'Part of `slots` on providers with trust level hardware. Only in responses for one model.' }),
    ),
    hardware_expected_wait_ms: Type.Optional(
      Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
        description: 'expected_wait_ms of a request that requires trust level hardware. Only in responses for one model.',
      }),
    ),
    sizes: Type.Optional(Type.Array(Type.String(), { description: 'Sizes of an image model, as <width>x<height>.' })),
    max_images: Type.Optional(Type.Integer({ minimum: 0, description: 'Maximum images per request of an image model.' })),
    max_input_images: Type.Optional(
      Type.Integer({ minimum: 1, description: 'Maximum images as input of one request. Only of models that read images.' }),
    ),
    max_image_tokens: Type.Optional(
      Type.Integer({ minimum: 1, description: 'Maximum prompt tokens of one input image. Only of models that read images.' }),
    ),
  }),
});

export const MODEL_SCHEMAS = {
  Model,
  ModelList: Type.Object({ object: Type.Literal('list'), data: Type.Array(Model) }),
  NetworkModels: Type.Object({
    object: Type.Literal('list'),
    updated_at: Type.String({ description: 'When the statistics were computed, ISO 8601, UTC.' }),
    data: Type.Array(Type.Intersect([Model, Type.Object({ statistics: ModelStatisticsSchema })])),
  }),
};
