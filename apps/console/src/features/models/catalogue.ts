/** `useCatalogue`: public list of the models that providers serve now, with prices and statistics, from `GET /v1/network/models`. */
import type { ModelStatistics } from '@inference/formats';
import { useQuery } from '@tanstack/react-query';
import { api } from '../../api/api-client.js';

/** Subset of an entry. The names of its members follow OpenRouter's model list. */
export interface CatalogueModel {
  readonly id: string;
  readonly name: string;
  /** Absent for image models. Null if unknown. */
  readonly context_length?: number | null;
  readonly architecture: { readonly input_modalities: readonly string[] };
  /** USD as decimal numbers: per token, and in `image_output` per generated image of 1024×1024 pixels. */
  readonly pricing: {
    readonly prompt: string;
    readonly completion: string;
    readonly input_cache_read: string;
    readonly image_output?: string;
  };
  readonly supported_parameters: readonly string[];
  readonly metadata: {
    readonly model_type: 'text' | 'embedding' | 'image';
    readonly quantization: string;
    readonly provider_count: number;
    /** Part of `provider_count` with trust level `hardware`. Coordinators of earlier versions omit it. */
    readonly hardware_providers?: number;
    /** `sizes` (`<width>x<height>`) and `max_images` (per request): only for image models. */
    readonly sizes?: readonly string[];
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

export function useCatalogue() {
  return useQuery({
    queryKey: ['public', 'models'],
    queryFn: async ({ signal }) => (await api.get<{ readonly data: readonly CatalogueModel[] }>('/v1/network/models', { signal })).data,
    refetchInterval: REFRESH_MS,
  });
}

export const TYPE_LABELS = { text: 'Text', embedding: 'Embeddings', image: 'Images' } as const satisfies Record<
  CatalogueModel['metadata']['model_type'],
  string
>;

/** Label of models that read images. */
export const VISION_LABEL = 'Vision';

export function readsImages({ architecture }: Pick<CatalogueModel, 'architecture'>): boolean {
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

export function pricesOf({ pricing, metadata: { model_type } }: Pick<CatalogueModel, 'pricing' | 'metadata'>): ModelPrices {
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
