/**
 * Parses the sources that `models pull` accepts (`hf:OWNER/REPOSITORY:QUANTIZATION`, a URL or a local path), and finds the files of a
 * model in a Hugging Face repository.
 */
import { basename } from 'node:path';
import { lazyValidator } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import { isProjectorName, likelyProjector, quantizationIn, repositoryProjector } from './repository-projector.js';
import { DownloadError } from './transfer.js';

export interface RemoteFile {
  /** Path relative to the store's folder; a plain file name except for image models. */
  readonly name: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Null if unknown before the download. */
  readonly bytes: number | null;
  /** Hexadecimal hash that the server lists, or null. */
  readonly sha256: string | null;
}

export type Source =
  | { readonly kind: 'repository'; readonly repository: string; readonly quantization: string | null }
  | { readonly kind: 'address'; readonly url: string }
  | { readonly kind: 'file'; readonly path: string };

export interface ModelRepository {
  /** Address of Hugging Face or a compatible server, without a trailing slash. */
  readonly url: string;
  readonly token: string | null;
}

/** Reads address and token from the environment, by the variable names of Hugging Face's own tools. */
export function modelRepositoryOf(env: Readonly<Record<string, string | undefined>>): ModelRepository {
  return { url: (env.HF_ENDPOINT || 'https://huggingface.co').replace(/\/+$/, ''), token: env.HF_TOKEN || null };
}

/** Throws {@link DownloadError} for text in none of the three forms. */
export function readSource(text: string): Source {
  const repository = /^hf:([A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.-]*)(?::([\w.-]+))?$/.exec(text);
  if (repository !== null) return { kind: 'repository', repository: repository[1] as string, quantization: repository[2] ?? null };
  if (text.startsWith('hf:')) throw new DownloadError('a repository is written as hf:OWNER/REPOSITORY or hf:OWNER/REPOSITORY:QUANTIZATION');
  if (/^https?:\/\//.test(text)) {
    if (!URL.canParse(text)) throw new DownloadError('this is not a valid address');
    return { kind: 'address', url: text };
  }
  return { kind: 'file', path: text };
}

export function addressFile(url: string, name = decodeURIComponent(basename(new URL(url).pathname))): RemoteFile {
  return { name: safeName(name), url, headers: {}, bytes: null, sha256: null };
}

const TreeSchema = Type.Array(
  Type.Object({
    type: Type.String(),
    path: Type.String(),
    size: Type.Integer({ minimum: 0 }),
    lfs: Type.Optional(Type.Object({ oid: Type.String({ pattern: '^[0-9a-f]{64}$' }) })),
  }),
);
const tree = lazyValidator(TreeSchema);
const API_TIMEOUT_MS = 30_000;
const DEFAULT_QUANTIZATION = 'Q4_K_M';

export type Repository = Source & { readonly kind: 'repository' };
export type Entries = Static<typeof TreeSchema>;

/** Files and folders of a repository. Throws {@link DownloadError}, or the signal's reason. */
export async function repositoryEntries(
  { repository }: Repository,
  modelRepository: ModelRepository,
  signal: AbortSignal,
): Promise<Entries> {
  return await listFiles(`${modelRepository.url}/api/models/${repository}/tree/main?recursive=true`, headersOf(modelRepository), signal);
}

/** One model file (or set of split files) in a repository, as `pull` downloads it. */
export interface Variant {
  /** For example `hf:owner/repository:Q4_K_M`. */
  readonly source: string;
  /** Null if the repository has one model, whose name states no quantization. */
  readonly quantization: string | null;
  /** Bytes of all files, a projector included. */
  readonly bytes: number;
  /** 0 if the model reads no images. */
  readonly projectorBytes: number;
  /** Hash of each file, or null if not listed. The projector is last. */
  readonly sha256: readonly (string | null)[];
}

/** The models of a repository that can be named in a source, smallest first. */
export function variantsOf(repository: string, entries: Entries): Variant[] {
  const groups = groupsOf(modelFiles(entries));
  const names = [...groups.keys()];
  return [...groups]
    .flatMap(([name, files]) => {
      const label = quantizationIn(name);
      const isUnique = label === null ? names.length === 1 : names.filter((other) => hasQuantization(other, label)).length === 1;
      if (!isUnique) return [];
      const projector = likelyProjector(repository, name, entries);
      const all = [...files.toSorted((a, b) => (a.path < b.path ? -1 : 1)), ...(projector === null ? [] : [projector])];
      return {
        source: label === null ? `hf:${repository}` : `hf:${repository}:${label}`,
        quantization: label,
        bytes: all.reduce((sum, { size }) => sum + size, 0),
        projectorBytes: projector?.size ?? 0,
        sha256: all.map(({ lfs }) => lfs?.oid ?? null),
      };
    })
    .sort((a, b) => a.bytes - b.bytes);
}

/** The variant of the default quantization if present, else the largest. Null for an empty list. */
export function preferredVariant(variants: readonly Variant[]): Variant | null {
  return variants.find(({ quantization }) => quantization?.toUpperCase() === DEFAULT_QUANTIZATION) ?? variants.at(-1) ?? null;
}

/** The model files of a source, in order. Throws {@link DownloadError} if the source does not name exactly one model. */
export function repositoryFiles(source: Repository, entries: Entries, modelRepository: ModelRepository): RemoteFile[] {
  return modelEntries(source, entries).map((entry) =>
    remoteFile(entry, safeName(basename(entry.path)), source.repository, modelRepository),
  );
}

/**
 * The projector for {@link repositoryFiles}, or null. Its name in the store contains repository and folder, because the projectors of
 * most repositories have the same file name.
 *
 * @param requested File name or precision that the owner asked for. If null, the preferred precision.
 * @throws {DownloadError} As {@link repositoryProjector}.
 */
export function repositoryProjectorFile(
  source: Repository,
  entries: Entries,
  requested: string | null,
  modelRepository: ModelRepository,
): RemoteFile | null {
  const { repository } = source;
  const [first] = modelEntries(source, entries);
  const entry = first === undefined ? null : repositoryProjector(repository, first.path, entries, requested);
  if (entry === null) return null;
  return remoteFile(entry, safeName(`${repository}/${entry.path}`.replaceAll('/', '--')), repository, modelRepository);
}

function modelEntries({ repository, quantization }: Repository, entries: Entries): Entries {
  const groups = groupsOf(modelFiles(entries));
  const names = [...groups.keys()];
  const requested = quantization ?? (names.length === 1 ? null : DEFAULT_QUANTIZATION);
  const fitting = requested === null ? names : names.filter((name) => hasQuantization(name, requested));
  const [only, ...others] = fitting;
  if (only === undefined || others.length > 0) {
    const what = names.length === 0 ? `${repository} holds no GGUF model` : `choose a quantization of ${repository}`;
    throw new DownloadError(`${what}${names.length === 0 ? '' : `: it holds ${names.slice(0, 40).join(', ')}`}`);
  }
  return (groups.get(only) ?? []).toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

/** The file at a path of a repository, under its own name. Throws {@link DownloadError}. */
export function repositoryFile({ repository }: Repository, entries: Entries, path: string, modelRepository: ModelRepository): RemoteFile {
  const entry = entries.find((one) => one.type === 'file' && one.path === path);
  if (entry === undefined) throw new DownloadError(`${repository} no longer has the file ${path}`);
  return remoteFile(entry, basename(path), repository, modelRepository);
}

/** Paths of an ONNX image model's files (onnx-folder.ts). */
const IMAGE_PARTS = /^(?:model_index\.json|(?:tokenizer|scheduler|text_encoder|unet|vae_decoder)\/[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})$/;

/** Folder in the store, and files, of a repository with an ONNX image model. Null for others, and if a quantization is requested. */
export function imageFolderOf(
  { repository, quantization }: Repository,
  entries: Entries,
  modelRepository: ModelRepository,
): { readonly folder: string; readonly files: readonly RemoteFile[] } | null {
  const isImageModel = ['model_index.json', 'unet/model.onnx'].every((name) => entries.some(({ path }) => path === name));
  if (!isImageModel || quantization !== null) return null;
  const folder = repository.replace('/', '--');
  const parts = entries.filter(({ type, path }) => type === 'file' && IMAGE_PARTS.test(path));
  return { folder, files: parts.map((entry) => remoteFile(entry, `${folder}/${entry.path}`, repository, modelRepository)) };
}

function remoteFile({ path, size, lfs }: Entries[number], name: string, repository: string, modelRepository: ModelRepository): RemoteFile {
  const url = `${modelRepository.url}/${repository}/resolve/main/${path.split('/').map(encodeURIComponent).join('/')}`;
  return { name, url, headers: headersOf(modelRepository), bytes: size, sha256: lfs?.oid ?? null };
}

export function headersOf({ token }: ModelRepository): Record<string, string> {
  return token === null ? {} : { authorization: `Bearer ${token}` };
}

async function listFiles(url: string, headers: Record<string, string>, signal: AbortSignal): Promise<Entries> {
  const body = await repositoryJson(url, headers, signal);
  if (!tree().Check(body)) throw new DownloadError('the model repository did not answer with a list of files');
  return body;
}

/** JSON of the model repository's API. Throws {@link DownloadError}, or the signal's reason. */
export async function repositoryJson(url: string, headers: Record<string, string>, signal: AbortSignal): Promise<unknown> {
  try {
    const response = await fetch(url, { headers, signal: AbortSignal.any([signal, AbortSignal.timeout(API_TIMEOUT_MS)]) });
    if (!response.ok) {
      await response.body?.cancel();
      throw new DownloadError(
        response.status === 404 || response.status === 401
          ? 'there is no such repository, or it requires a token (set HF_TOKEN)'
          : `the model repository answered with status ${response.status}`,
      );
    }
    return await response.json();
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof DownloadError ? error : new DownloadError('the model repository cannot be reached or sent an invalid response');
  }
}

/** GGUF files of models, without projectors and importance matrices. */
function modelFiles(entries: Entries): Entries {
  return entries.filter(
    ({ type, path }) => type === 'file' && /\.gguf$/i.test(path) && !isProjectorName(path) && !/imatrix/i.test(basename(path)),
  );
}

/** Path without part number and extension: the same for all files of a split model. */
function stem(path: string): string {
  return path.replace(/(?:-\d{5}-of-\d{5})?\.gguf$/i, '');
}

/** Files by `stem`: each group is one model. */
function groupsOf<T extends { readonly path: string }>(entries: readonly T[]): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const entry of entries) groups.set(stem(entry.path), [...(groups.get(stem(entry.path)) ?? []), entry]);
  return groups;
}

/** Whether a name contains a quantization: `q4_k_m` matches `Model-Q4_K_M` and `Q4_K_M/Model`, not `Model-IQ4_K_M`. */
function hasQuantization(name: string, quantization: string): boolean {
  const escaped = quantization.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`(?:^|[-_./])${escaped}(?:[-./]|$)`, 'i').test(name);
}

/** A name from a server as a file name that stays inside the store, with the ending `.gguf`. At most 133 characters. */
export function safeName(name: string): string {
  const safe = name
    .replace(/[^\w.-]+/g, '-')
    .replace(/^[.-]+/, '')
    .slice(-128);
  return /\.gguf$/i.test(safe) ? safe : `${safe || 'model'}.gguf`;
}
