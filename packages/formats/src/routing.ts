/**
 * Routing preferences of a request: the members `provider` and `models`, as in OpenRouter.
 *
 * Source: openrouter.ai/docs/features/provider-routing.
 */
import Type, { type Static } from 'typebox';
import { isPresent } from './errors/reject.js';
import { flag, model, nullable } from './fields.js';
import { memberTable } from './members/member-table.js';

/** Limits the lists, and thereby the work of one placement. */
const MAX_NAMES = 32;
const MAX_FALLBACK_MODELS = 8;

const names = nullable(
  Type.Array(Type.String({ minLength: 1, maxLength: 128 }), { maxItems: MAX_NAMES }),
  `an array of up to ${MAX_NAMES} provider ids or serial numbers`,
);
/** OpenRouter's SDKs send strings, other clients send numbers. */
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
    /** Use only these providers. */
    only: names,
    /** Never use these providers. */
    ignore: names,
    /** Try these providers first, in this order. */
    order: names,
    /** False: make only one attempt, on the first choice. */
    allow_fallbacks: flag,
    quantizations: nullable(Type.Array(Type.String({ minLength: 1, maxLength: 32 }), { maxItems: 16 }), 'an array of up to 16 labels'),
    max_price: nullable(MaxPriceSchema, 'an object with prompt, completion, image or request'),
    /** Extension; OpenRouter has no trust levels. */
    min_trust: nullable(Type.Enum(['self_signed', 'hardware']), 'self_signed or hardware'),
    sort: nullable(Type.Union([SortSchema, SortConfigSchema]), 'one of price, throughput, latency'),
    /** No effect: all providers support the same parameters. */
    require_parameters: flag,
  },
  { description: 'an object' },
);

/** Request members of all formats. Image requests have only `provider`. */
export const ROUTING_FIELDS = {
  provider: nullable(ProviderPreferencesSchema, 'an object with routing preferences'),
  models: nullable(Type.Array(model, { maxItems: MAX_FALLBACK_MODELS }), `an array of up to ${MAX_FALLBACK_MODELS} models`),
};

const SORT = { advice: 'Use sort.' };

/** Member table of `provider`. Refuses preferences that this network cannot guarantee. */
export const PROVIDER_PREFERENCES = memberTable({
  schema: ProviderPreferencesSchema,
  refused: {
    data_collection: { allowedValues: ['allow'], advice: 'Providers read prompts. Use min_trust, or the end-to-end mode.' },
    zdr: { advice: 'Providers may keep prompt prefixes in memory for a while.' },
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

/** Routing preferences of one request. Providers are named by id or serial number. */
export interface RoutingPreferences {
  /** Distinct models to try after `model`, in order. */
  readonly fallbackModels: readonly string[];
  /** Null: any provider. */
  readonly only: readonly string[] | null;
  readonly ignore: readonly string[];
  readonly order: readonly string[];
  readonly allowsFallbacks: boolean;
  /** Quantization labels in lower case. Null: any. */
  readonly quantizations: readonly string[] | null;
  readonly maxPrice: MaxPrice | null;
  readonly minTrust: 'self_signed' | 'hardware' | null;
  readonly sort: 'price' | 'throughput' | 'latency' | null;
  /** Names of the members of `provider` that the request has, such as `only` and `sort`. */
  readonly given: readonly string[];
}

/**
 * Maximum prices in micro-USD, per million tokens or per image; null: no limit.
 *
 * Limits per request and for audio are always met, because neither is charged.
 */
export interface MaxPrice {
  readonly promptPerMillion: number | null;
  readonly completionPerMillion: number | null;
  readonly perImage: number | null;
}

/** Reads the preferences of a request. `routing` is absent if there are none. */
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

/** Whether the value means no preference. Empty lists do, as in OpenRouter. */
function isEmpty(value: unknown): boolean {
  return value === null || value === undefined || (Array.isArray(value) && value.length === 0);
}

function listOf(list: readonly string[] | null | undefined): readonly string[] | null {
  return list === null || list === undefined || list.length === 0 ? null : list;
}

/** Key: OpenRouter's name. Value: further labels of this network that match. */
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

/** Converts USD to micro-USD, rounded down. The tolerance compensates binary rounding: 0.29 × 10⁶ is 289,999.99…. */
function microUsdOf(usd: number | string | null | undefined): number | null {
  return usd === null || usd === undefined ? null : Math.floor(Number(usd) * 1_000_000 + 1e-4);
}
