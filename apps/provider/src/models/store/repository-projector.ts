/** `repositoryProjector` chooses among the projectors (`mmproj`) of a Hugging Face repository the one for a model file. Pure. */
import { basename, dirname } from 'node:path';
import { DownloadError } from './transfer.js';

/** Label of a quantization in a file name, for example `Q4_K_M`, `IQ3_XXS`, `MXFP4` or `BF16`. */
const QUANTIZATION = /(?:^|[-_./])(I?Q\d(?:_[A-Z0-9]+)*|MXFP4|B?F16|F32)(?=[-./]|$)/gi;

/** In order of preference. F16 has full quality and is small compared with the model. */
const PREFERRED_PRECISIONS = ['F16', 'Q8_0', 'BF16', 'F32'];

interface File {
  readonly path: string;
}

/** The last quantization label in a name, or null. */
export function quantizationIn(name: string): string | null {
  return [...name.matchAll(QUANTIZATION)].at(-1)?.[1] ?? null;
}

export function isProjectorName(path: string): boolean {
  return /\.gguf$/i.test(path) && /mmproj/i.test(basename(path));
}

/**
 * The projector for a model file; null if the repository has none.
 *
 * @param requested File name or precision such as `BF16`. If null, the first of `PREFERRED_PRECISIONS` that exists.
 * @throws {DownloadError} The requested projector does not exist, or several projectors fit equally.
 */
export function repositoryProjector<F extends File>(
  repository: string,
  modelPath: string,
  files: readonly F[],
  requested: string | null,
): F | null {
  const all = files.filter(({ path }) => isProjectorName(path));
  const names = all.map(({ path }) => path).join(', ');
  if (requested !== null) {
    const named = all.find(({ path }) => [path, basename(path)].some((name) => name.toLowerCase() === requested.toLowerCase()));
    if (named !== undefined) return named;
    const labelled = ofModel(modelPath, all).filter(({ path }) => quantizationIn(path)?.toLowerCase() === requested.toLowerCase());
    if (labelled.length === 1) return labelled[0] ?? null;
    const found = names === '' ? 'it holds none' : `it holds ${names}`;
    throw new DownloadError(`${repository} has no single projector ${requested}: ${found}`);
  }
  if (all.length === 0) return null;
  const [best, ...others] = ofModel(modelPath, all).toSorted((a, b) => rankOf(a) - rankOf(b));
  if (best === undefined || others.some((other) => rankOf(other) === rankOf(best))) {
    throw new DownloadError(
      `choose a projector of ${repository} with --projector: it holds ${names}; or use --text-only to read no images`,
    );
  }
  return best;
}

/** Like {@link repositoryProjector} without a request, but null if several projectors fit equally. */
export function likelyProjector<F extends File>(repository: string, modelPath: string, files: readonly F[]): F | null {
  try {
    return repositoryProjector(repository, modelPath, files, null);
  } catch (error) {
    if (error instanceof DownloadError) return null;
    throw error;
  }
}

/**
 * Projectors that may belong to a model. Searches those in the model's folder, or else all.
 *
 * Returns those that name the model, or else those without a model name, or else all if they have the same name.
 */
function ofModel<F extends File>(modelPath: string, projectors: readonly F[]): readonly F[] {
  const beside = projectors.filter(({ path }) => dirname(path) === dirname(modelPath));
  const candidates = beside.length > 0 ? beside : projectors;
  const model = normalizeName(basename(modelPath));
  const named = candidates.filter(({ path }) => nameOf(path) !== '' && model.includes(nameOf(path)));
  if (named.length > 0) return named;
  const unnamed = candidates.filter(({ path }) => nameOf(path) === '');
  const isOneModel = new Set(candidates.map(({ path }) => nameOf(path))).size === 1;
  return unnamed.length > 0 ? unnamed : isOneModel ? candidates : [];
}

/** `gemma-3-4b-it` of `mmproj-gemma-3-4b-it-f16.gguf`; empty for `mmproj-model-f16.gguf`. */
function nameOf(path: string): string {
  return normalizeName(
    basename(path)
      .replace(QUANTIZATION, '')
      .replace(/mmproj|\bmodel\b|\.gguf$/gi, ''),
  );
}

function normalizeName(name: string): string {
  return name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');
}

function rankOf({ path }: File): number {
  const rank = PREFERRED_PRECISIONS.indexOf(quantizationIn(path)?.toUpperCase() ?? '');
  return rank < 0 ? PREFERRED_PRECISIONS.length : rank;
}
