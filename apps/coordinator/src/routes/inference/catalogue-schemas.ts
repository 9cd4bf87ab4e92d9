/** Schemas of the catalogue. A description in a change's schema completes the error message "<field> must be <description>". */
import { ModelOfferSchema, type ModelType, Sha256HexSchema } from '@inference/protocol';
import Type from 'typebox';
import { MAX_PER_IMAGE, MAX_PER_MILLION } from '../../billing/prices/price-repository.js';

const perMillion = Type.Integer({
  minimum: 0,
  maximum: MAX_PER_MILLION,
  description: `a whole number of micro-USD from 0 to ${MAX_PER_MILLION}`,
});
const perImage = Type.Integer({
  minimum: 0,
  maximum: MAX_PER_IMAGE,
  description: `a whole number of micro-USD from 0 to ${MAX_PER_IMAGE}`,
});
const { display_name, quantization, model_type } = ModelOfferSchema.properties;

export const CatalogueChangeSchema = Type.Object(
  {
    display_name: Type.Unsafe<string>({ ...display_name, description: 'a name of up to 256 characters' }),
    quantization: Type.Unsafe<string>({ ...quantization, description: 'a label such as 4bit' }),
    model_type: Type.Optional(Type.Unsafe<ModelType>({ ...model_type, description: '"text", "embedding" or "image"' })),
    min_memory_bytes: Type.Optional(Type.Integer({ minimum: 0, maximum: 2 ** 50, description: 'a whole number of bytes' })),
    file_sha256: Type.Optional(
      Type.Array(Type.String({ ...Sha256HexSchema, description: '64 hexadecimal digits, in lower case' }), {
        maxItems: 64,
        description: 'an array of up to 64 hashes',
      }),
    ),
    prices: Type.Optional(
      Type.Object(
        {
          prompt_per_million: perMillion,
          cached_per_million: Type.Optional(perMillion),
          completion_per_million: perMillion,
          per_image: Type.Optional(perImage),
        },
        { description: 'an object with prompt_per_million and completion_per_million' },
      ),
    ),
  },
  { description: 'a JSON object' },
);

const CatalogueEntry = Type.Object({
  id: Type.String(),
  display_name: Type.String(),
  quantization: Type.String(),
  model_type,
  min_memory_bytes: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
    description: 'Minimum memory of a provider that serves the model.',
  }),
  file_sha256: Type.Array(Type.String(), { description: 'SHA-256 of the files that may be served under this id; empty: any file.' }),
  prices: Type.Object({
    prompt_per_million: Type.Integer(),
    cached_per_million: Type.Integer(),
    completion_per_million: Type.Integer(),
    per_image: Type.Integer(),
  }),
  updated_at: Type.String(),
});

export const CATALOGUE_SCHEMAS = {
  Catalogue: Type.Object({
    object: Type.Literal('list'),
    exclusive: Type.Boolean({ description: 'Whether models outside this list are rejected.' }),
    currency: Type.Literal('micro_usd'),
    data: Type.Array(CatalogueEntry),
  }),
};
