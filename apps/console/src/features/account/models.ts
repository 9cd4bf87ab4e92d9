/** Models available now, from `GET /v1/models`. */
import { useQuery } from '@tanstack/react-query';
import { api } from '../../api/api-client.js';

export interface ModelEntry {
  readonly id: string;
  /** Absent from coordinators of earlier versions. */
  readonly architecture?: { readonly input_modalities: readonly string[] };
  readonly metadata: {
    readonly model_type: string;
    readonly display_name?: string | null;
    readonly provider_count: number;
    readonly trust_level: string;
    /** Such as `1024x1024`. Only for image models. */
    readonly sizes?: readonly string[];
    /** Maximum generated images per request. Only for image models. */
    readonly max_images?: number;
  };
}

export function useModels() {
  return useQuery({
    queryKey: ['models'],
    queryFn: async ({ signal }) => (await api.get<{ data: readonly ModelEntry[] }>('/v1/models', { signal })).data,
    refetchInterval: 30_000,
  });
}

export function textModels(models: readonly ModelEntry[]): ModelEntry[] {
  return models.filter(({ metadata }) => metadata.model_type === 'text');
}

export function imageModels(models: readonly ModelEntry[]): ModelEntry[] {
  return models.filter(({ metadata }) => metadata.model_type === 'image');
}

export function readsImages({ architecture }: ModelEntry): boolean {
  return architecture?.input_modalities.includes('image') === true;
}

export function modelName({ id, metadata }: ModelEntry): string {
  const { display_name } = metadata;
  return display_name === undefined || display_name === null || display_name === '' || display_name === id ? id : `${display_name} (${id})`;
}
