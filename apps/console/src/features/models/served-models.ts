/** `useServedModels`: public list of the models that providers serve now, with prices and statistics, from `GET /v1/network/models`. */
import type { ModelStatistics } from '@inference/formats';
import { useQuery } from '@tanstack/react-query';
import { api } from '../../api/api-client.js';

/** Members of an entry that the console reads, named as in OpenRouter's model list. */
export interface ServedModel {
  readonly id: string;
  readonly name: string;
  /** Absent for image models. Null if unknown. */
  readonly context_length?: number | null;
  readonly architecture: { readonly input_modalities: readonly string[] };
  /** USD per token, as decimal text. */
  readonly pricing: {
    readonly prompt: string;
    readonly completion: string;
    readonly input_cache_read: string;
    /** USD per generated image of 1024×1024 pixels. */
    readonly image_output?: string;
  };
  readonly supported_parameters: readonly string[];
  readonly metadata: {
    readonly model_type: 'text' | 'embedding' | 'image';
    readonly quantization: string;
    readonly provider_count: number;
    /** Providers among `provider_count` with trust level `hardware`. Absent from coordinators of earlier versions. */
    readonly hardware_providers?: number;
    /** Such as `1024x1024`. Only for image models. */
    readonly sizes?: readonly string[];
    /** Maximum generated images per request. Only for image models. */
    readonly max_images?: number;
    /** Maximum input images per request. Only for models that read images. */
    readonly max_input_images?: number;
    /** Maximum prompt tokens of one input image. Only for models that read images. */
    readonly max_image_tokens?: number;
  };
  readonly statistics: ModelStatistics;
}

/** Equals the time for which the coordinator caches statistics. */
const REFRESH_MS = 60_000;

export function useServedModels() {
  return useQuery({
    queryKey: ['public', 'models'],
    queryFn: async ({ signal }) => (await api.get<{ readonly data: readonly ServedModel[] }>('/v1/network/models', { signal })).data,
    refetchInterval: REFRESH_MS,
  });
}

export const TYPE_LABELS = { text: 'Text', embedding: 'Embeddings', image: 'Images' } as const satisfies Record<
  ServedModel['metadata']['model_type'],
  string
>;

/** Label of models that read images. */
export const VISION_LABEL = 'Vision';

export function readsImages({ architecture }: Pick<ServedModel, 'architecture'>): boolean {
  return architecture.input_modalities.includes('image');
}

/** Micro-USD per million tokens, except `image`. Null: models of this type are not charged for it. */
export interface ModelPrices {
  readonly input: number | null;
  readonly cachedInput: number | null;
  readonly output: number | null;
  /** Micro-USD per image of 1024×1024 pixels. */
  readonly image: number | null;
}

export function pricesOf({ pricing, metadata: { model_type } }: Pick<ServedModel, 'pricing' | 'metadata'>): ModelPrices {
  const isImage = model_type === 'image';
  return {
    input: isImage ? null : microUsdPerMillion(pricing.prompt),
    cachedInput: isImage ? null : microUsdPerMillion(pricing.input_cache_read),
    output: model_type === 'text' ? microUsdPerMillion(pricing.completion) : null,
    image: pricing.image_output === undefined ? null : Math.round(Number(pricing.image_output) * 1e6),
  };
}

/** Exact, because prices are whole micro-USD per million tokens. */
function microUsdPerMillion(usdPerToken: string): number {
  return Math.round(Number(usdPerToken) * 1e12);
}
