/** `searchRepositories` finds Hugging Face repositories with GGUF models, without kinds of models that this program cannot run. */
import { lazyValidator } from '@inference/protocol';
import Type from 'typebox';
import { knownModel } from '../image/known-models.js';
import { headersOf, type ModelRepository, repositoryJson } from './model-repository.js';
import { DownloadError } from './transfer.js';

const SearchSchema = Type.Array(
  Type.Object({
    id: Type.String({ maxLength: 256 }),
    downloads: Type.Optional(Type.Integer({ minimum: 0 })),
    /** False, or the way in which access is granted (`auto`, `manual`). */
    gated: Type.Optional(Type.Union([Type.Boolean(), Type.String()])),
    pipeline_tag: Type.Optional(Type.String()),
  }),
);
const search = lazyValidator(SearchSchema);
const REPOSITORY = /^[A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.-]*$/;
/** Hugging Face tasks of models that the engines cannot run. */
const UNSERVED_TASKS = /-to-(?:image|3d)|audio|speech|video|ranking/;

export interface FoundRepository {
  readonly repository: string;
  /** Count of the last month; null if not reported. */
  readonly downloads: number | null;
  /** Whether a download requires HF_TOKEN of an account with access. */
  readonly isGated: boolean;
}

/** Repositories with GGUF models that match a text, most downloaded first. Throws {@link DownloadError}. */
export async function searchRepositories(
  text: string,
  limit: number,
  modelRepository: ModelRepository,
  signal: AbortSignal,
): Promise<FoundRepository[]> {
  const query = new URLSearchParams({ filter: 'gguf', sort: 'downloads', direction: '-1', limit: String(limit) });
  if (text !== '') query.set('search', text);
  const body = await repositoryJson(`${modelRepository.url}/api/models?${query}`, headersOf(modelRepository), signal);
  if (!search().Check(body)) throw new DownloadError('the model repository did not answer with a list of repositories');
  return body
    .filter(({ id, pipeline_tag: task }) => REPOSITORY.test(id) && (knownModel(id) !== null || !UNSERVED_TASKS.test(task ?? '')))
    .map(({ id, downloads, gated }) => ({ repository: id, downloads: downloads ?? null, isGated: gated !== undefined && gated !== false }));
}
