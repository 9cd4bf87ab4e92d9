/**
 * Members of a model as in OpenRouter's model list (openrouter.ai/docs/models), and the schemas of these members.
 *
 * Model lists of this network contain these members, so that clients written for OpenRouter find names, prices and limits.
 */
import { DEFAULT_TEMPERATURE, supportedParameters } from '@inference/formats';
import type { ModelType } from '@inference/protocol';
import Type from 'typebox';
import { cachedRate, type Rates } from '../../billing/prices/price.js';
import type { ModelPart } from './model-parts.js';

/** OpenRouter's value for a tokenizer without a name. */
const TOKENIZER = 'Other';

/** OpenRouter's names of output modalities. */
const OUTPUTS = { text: 'text', embedding: 'embeddings', image: 'image' } as const satisfies Record<ModelType, string>;
const DESCRIPTION_STARTS = { text: 'Text model', embedding: 'Embedding model', image: 'Image model' } as const satisfies Record<
  ModelType,
  string
>;

/** Members for one model at the current rates. Schema: {@link OPEN_ROUTER_MEMBERS}. */
export function openRouterMembers(model: ModelPart, rates: Rates) {
  const { id, model_type, display_name, context_length, thinks = false, vision } = model;
  const inputs = vision === undefined ? (['text'] as const) : (['text', 'image'] as const);
  const output = OUTPUTS[model_type];
  return {
    canonical_slug: id,
    name: display_name,
    description: descriptionOf(model),
    architecture: {
      modality: `${inputs.join('+')}->${output}`,
      input_modalities: [...inputs],
      output_modalities: [output],
      tokenizer: TOKENIZER,
      instruct_type: null,
    },
    pricing: pricingOf(model_type, rates),
    top_provider: {
      context_length: model_type === 'image' ? null : context_length,
      max_completion_tokens: model_type === 'text' ? context_length : null,
      is_moderated: false,
    },
    per_request_limits: null,
    supported_parameters: supportedParameters(model_type, thinks),
    default_parameters: model_type === 'text' ? { temperature: DEFAULT_TEMPERATURE } : null,
    links: { details: `/v1/models/${id}` },
  };
}

function descriptionOf({ model_type, display_name, quantization, context_length, thinks, sizes, vision }: ModelPart): string {
  const facts = [`${DESCRIPTION_STARTS[model_type]} ${display_name}, ${quantization}`];
  if (model_type === 'image') facts.push(`sizes ${sizes.join(', ')}`);
  else if (context_length !== null) facts.push(`context of ${context_length} tokens`);
  if (vision !== undefined) facts.push(`reads up to ${vision.max_images} images per request`);
  if (thinks === true) facts.push('writes think sections');
  return `${facts.join('; ')}.`;
}

/** Prices as decimal strings in USD. Image requests are charged per image only. Embeddings have no completion. */
function pricingOf(type: ModelType, rates: Rates) {
  const { promptPerMillion, completionPerMillion, perImage } = rates;
  return {
    prompt: type === 'image' ? '0' : usdPerToken(promptPerMillion),
    completion: type === 'text' ? usdPerToken(completionPerMillion) : '0',
    request: '0',
    image: '0',
    input_cache_read: type === 'image' ? '0' : usdPerToken(cachedRate(rates)),
    ...(type === 'image' ? { image_output: decimal(perImage, 6) } : {}),
  };
}

/** Exact conversion: 1 micro-USD per million tokens is 10⁻¹² USD per token. */
function usdPerToken(microUsdPerMillion: number): string {
  return decimal(microUsdPerMillion, 12);
}

/** `units` × 10^-`places` without trailing zeros: `0.00000005`. */
function decimal(units: number, places: number): string {
  const digits = String(units).padStart(places + 1, '0');
  const fraction = digits.slice(-places).replace(/0+$/, '');
  const whole = digits.slice(0, -places);
  return fraction === '' ? whole : `${whole}.${fraction}`;
}

/** Schema of a token count that may be unknown. */
export const tokensOrNull = (description: string) => Type.Union([Type.Integer({ minimum: 1 }), Type.Null()], { description });

const usd = (description: string) => Type.String({ pattern: '^(0|[1-9][0-9]*)(\\.[0-9]+)?$', description });
const modality = Type.Enum(['text', 'embeddings', 'image']);

/** Schemas of {@link openRouterMembers}. */
export const OPEN_ROUTER_MEMBERS = {
  canonical_slug: Type.String({ description: 'Same as `id`.' }),
  name: Type.String({ description: 'Same as `metadata.display_name`.' }),
  description: Type.String(),
  architecture: Type.Object({
    modality: Type.String({ description: 'For example `text->text`, or `text+image->text` for a model that reads images.' }),
    input_modalities: Type.Array(modality),
    output_modalities: Type.Array(modality),
    tokenizer: Type.String({ description: 'Always `Other`: providers do not report it.' }),
    instruct_type: Type.Null({ description: 'Providers apply the chat template of the model itself.' }),
  }),
  pricing: Type.Object(
    {
      prompt: usd('USD per prompt token.'),
      completion: usd('USD per completion token, think sections included.'),
      request: usd('USD per request: always 0.'),
      image: usd('USD per input image: always 0, because images are charged by their prompt tokens.'),
      input_cache_read: usd('USD per prompt token from the prefix cache (`cached_tokens`).'),
      image_output: Type.Optional(
        usd('USD per generated image of 1024×1024 pixels; other sizes are charged by pixels. Only for image models.'),
      ),
    },
    { description: 'Prices of requests that begin now, as decimal numbers. `GET /v1/prices` has them in micro-USD.' },
  ),
  top_provider: Type.Object(
    {
      context_length: tokensOrNull('Same as `context_length` of the model.'),
      max_completion_tokens: tokensOrNull('Same as `max_output_tokens` of the model.'),
      is_moderated: Type.Literal(false, { description: 'The network does not moderate requests.' }),
    },
    { description: 'Limits of the provider with the longest context.' },
  ),
  per_request_limits: Type.Null({ description: 'Always null: no token limits besides the context.' }),
  supported_parameters: Type.Array(Type.String(), {
    description: 'Parameters that take effect: of `POST /v1/chat/completions`, or of the embeddings or images endpoint for such models.',
  }),
  default_parameters: Type.Union([Type.Object({ temperature: Type.Number() }), Type.Null()], {
    description: 'Default values of parameters.',
  }),
  links: Type.Object({ details: Type.String({ description: 'Address of this entry with the demand for the model.' }) }),
};
