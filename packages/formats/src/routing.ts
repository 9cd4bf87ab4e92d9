/** Routing preferences of a request, in the form of OpenRouter (openrouter.ai/docs/features/provider-routing): `provider` and `models`. */
import Type, { type Static } from 'typebox';
import { isPresent } from './errors/refusal.js';
import { flag, model, nullable } from './fields.js';
import { memberTable } from './members/member-table.js';

/** Bounds the lists, and so the work of one placement. */
const MAX_NAMES = 32;
const MAX_FALLBACK_MODELS = 8;

const names = nullable(
  Type.Array(Type.String({ minLength: 1, maxLength: 128 }), { maxItems: MAX_NAMES }),
  `an array of up to ${MAX_NAMES} provider ids or serial numbers`,
);
/** OpenRouter's SDKs send text, others numbers. */
const usd = nullable(
  Type.Union([Type.Number({ minimum: 0, maximum: 1_000_000_000 }), Type.String({ pattern: '^\\d{1,9}(\\.\\d{1,12})?$' })]),
  'a number of USD, at least 0',
);

const MaxPriceSchema = Type.Object(
  { prompt: usd, completion: usd, image: usd, request: usd, audio: usd },
  { description: 'an object with prompt, completion, image or request, in USD per million tokens, per image or per request' },
);
const SortSchema = Type.Enum(['price', 'throughput', 'latency'], { description: 'one of price, throughput, latency' });
const SortConfigSchema = Type.Object(
  { by: nullable(SortSchema, 'one of price, throughput, latency'), partition: nullable(Type.Literal('model'), '"model"') },
  { description: 'an object with by' },
);

export const ProviderPreferencesSchema = Type.Object(
  {
    /** Only these providers. */
    only: names,
    /** Never these providers. */
    ignore: names,
    /** These providers first, in this order. */
    order: names,
    /** False: one attempt, on the first choice. */
    allow_fallbacks: flag,
    quantizations: nullable(Type.Array(Type.String({ minLength: 1, maxLength: 32 }), { maxItems: 16 }), 'an array of up to 16 labels'),
    max_price: nullable(MaxPriceSchema, 'an object with prompt, completion, image or request'),
    /** Not in OpenRouter. */
    min_trust: nullable(Type.Enum(['self_signed', 'hardware']), 'self_signed or hardware'),
    sort: nullable(Type.Union([SortSchema, SortConfigSchema]), 'one of price, throughput, latency'),
    /** Always satisfied: every provider takes every supported parameter. */
    require_parameters: flag,
  },
  { description: 'an object' },
);

/** Members of the formats of text and vectors; images take `provider` only. */
export const ROUTING_FIELDS = {
  provider: nullable(ProviderPreferencesSchema, 'an object with routing preferences'),
  models: nullable(Type.Array(model, { maxItems: MAX_FALLBACK_MODELS }), `an array of up to ${MAX_FALLBACK_MODELS} models`),
};

const SORT = { advice: 'Use sort.' };

/** Members of `provider` that no provider here can promise are refused by name. */
export const PROVIDER_PREFERENCES = memberTable({
  schema: ProviderPreferencesSchema,
  refused: {
    data_collection: { allowedValues: ['allow'], advice: 'Providers read prompts. Use min_trust, or the end-to-end mode.' },
    zdr: { advice: 'Providers keep prompt prefixes in memory for a while.' },
    enforce_distillable_text: {},
    preferred_min_throughput: SORT,
    preferred_max_latency: SORT,
  },
  within: {
    max_price: memberTable({ schema: MaxPriceSchema, refusesUnknown: true }),
    sort: memberTable({ schema: SortConfigSchema, refusesUnknown: true }),
  },
  refusesUnknown: true,
});

/** Preferences of one request. Names are provider ids or serial numbers. */
export interface RoutingPreferences {
  /** Models to try after `model`, in order, none twice. */
  readonly fallbackModels: readonly string[];
  /** Null: any provider. */
  readonly only: readonly string[] | null;
  readonly ignore: readonly string[];
  readonly order: readonly string[];
  readonly allowsFallbacks: boolean;
  /** Lower-case labels of offers. Null: any. */
  readonly quantizations: readonly string[] | null;
  readonly maxPrice: MaxPrice | null;
  readonly minTrust: 'self_signed' | 'hardware' | null;
  readonly sort: 'price' | 'throughput' | 'latency' | null;
  /** Members of the request, unchanged: `only`, `sort`. */
  readonly given: readonly string[];
}

/** Whole micro-USD per million tokens, or per image; null: no limit. Limits per request or audio always hold: nothing is charged. */
export interface MaxPrice {
  readonly promptPerMillion: number | null;
  readonly completionPerMillion: number | null;
  readonly perImage: number | null;
}

/** The preferences of a request; undefined: none given. */
export function routingOf(body: {
  readonly model: string;
  readonly provider?: Static<typeof ROUTING_FIELDS.provider>;
  readonly models?: Static<typeof ROUTING_FIELDS.models>;
}): { readonly routing?: RoutingPreferences } {
  const preferences = body.provider ?? {};
  const given = Object.entries(preferences).flatMap(([name, value]) => (isEmpty(value) ? [] : [name]));
  const fallbackModels = [...new Set(body.models ?? [])].filter((name) => name !== body.model);
  if (given.length === 0 && fallbackModels.length === 0) return {};
  const { only, ignore, order, allow_fallbacks, quantizations, max_price, min_trust, sort } = preferences;
  return {
    routing: {
      fallbackModels,
      only: listOf(only),
      ignore: ignore ?? [],
      order: [...new Set(order ?? [])],
      allowsFallbacks: allow_fallbacks ?? true,
      quantizations: labelsOf(listOf(quantizations)),
      maxPrice: isPresent(max_price) ? maxPriceOf(max_price) : null,
      minTrust: min_trust ?? null,
      sort: typeof sort === 'string' ? sort : (sort?.by ?? null),
      given,
    },
  };
}

/** Empty lists mean no preference, as in OpenRouter. */
function isEmpty(value: unknown): boolean {
  return value === null || value === undefined || (Array.isArray(value) && value.length === 0);
}

function listOf(list: readonly string[] | null | undefined): readonly string[] | null {
  return list === null || list === undefined || list.length === 0 ? null : list;
}

/** Labels of this network for OpenRouter's names. */
const LABELS: Readonly<Record<string, readonly string[]>> = {
  int4: ['4bit'],
  int8: ['8bit'],
  fp16: ['f16', '16bit'],
  fp32: ['f32', '32bit'],
};

function labelsOf(quantizations: readonly string[] | null): readonly string[] | null {
  if (quantizations === null) return null;
  return [...new Set(quantizations.flatMap((name) => [name.toLowerCase(), ...(LABELS[name.toLowerCase()] ?? [])]))];
}

function maxPriceOf({ prompt, completion, image }: Static<typeof MaxPriceSchema>): MaxPrice {
  return { promptPerMillion: microUsdOf(prompt), completionPerMillion: microUsdOf(completion), perImage: microUsdOf(image) };
}

/** Rounded down to whole micro-USD, the unit of prices. The tolerance undoes binary rounding: 0.29 × 10⁶ is 289,999.99…. */
function microUsdOf(usd: number | string | null | undefined): number | null {
  return usd === null || usd === undefined ? null : Math.floor(Number(usd) * 1_000_000 + 1e-4);
}
