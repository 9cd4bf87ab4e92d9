/** `filterModels`: search and type filter of the page `/models`. */
import { readsImages, type ServedModel } from '../../features/models/served-models.js';

/** `vision`: text models that read images. */
export const MODEL_TYPES = ['all', 'text', 'vision', 'embedding', 'image'] as const;

interface ModelFilter {
  /** Part of a name or id, case-insensitive. */
  readonly search: string;
  readonly type: (typeof MODEL_TYPES)[number];
}

/** Matching models, sorted by number of machines, descending. */
export function filterModels(models: readonly ServedModel[], { search, type }: ModelFilter): ServedModel[] {
  const needle = search.trim().toLowerCase();
  return models
    .filter(
      ({ id, name, metadata, architecture }) =>
        (type === 'all' || (type === 'vision' ? readsImages({ architecture }) : metadata.model_type === type)) &&
        (needle === '' || id.toLowerCase().includes(needle) || name.toLowerCase().includes(needle)),
    )
    .sort((one, other) => other.metadata.provider_count - one.metadata.provider_count || one.name.localeCompare(other.name));
}
