/** `pull` implements `models pull`: downloads a model, compares its hash with those that are known, and adds it to the store. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { type FileHashes, modelHash } from '../file-hash.js';
import { type KnownModel, knownModel } from '../image/known-models.js';
import { DESCRIPTION_FILE } from '../image/stable-diffusion-folder.js';
import { type ModelFacts, readModelFacts } from '../model-facts.js';
import { AudioProjectorError, adjacentProjectorPath } from '../projector.js';
import { download } from './download.js';
import {
  addressFile,
  type Entries,
  imageFolderOf,
  type ModelRepository,
  type RemoteFile,
  type Repository,
  readSource,
  repositoryEntries,
  repositoryFile,
  repositoryFiles,
  repositoryProjectorFile,
  safeName,
} from './model-repository.js';
import type { ModelStore, StoredModel } from './model-store.js';
import { DownloadError, type Progress, requireSpace, type Tuning } from './transfer.js';

/** `usual`: the projector beside the model at its source, if any. `name`: a path, a URL, or a file name or precision in the repository. */
export type ProjectorChoice = { readonly kind: 'usual' } | { readonly kind: 'none' } | { readonly kind: 'named'; readonly name: string };

export interface PullOptions {
  readonly source: string;
  readonly store: ModelStore;
  readonly hashes: FileHashes;
  readonly modelRepository: ModelRepository;
  /** Id of the model. If null, derived from its name. */
  readonly id: string | null;
  readonly projector: ProjectorChoice;
  /** Hash of the model that the owner expects, or null. */
  readonly sha256: string | null;
  /** Hashes that the coordinator's catalogue allows for an id. Resolves to null if every hash is allowed. */
  readonly catalogueHashesOf: (id: string) => Promise<readonly string[] | null>;
  readonly installEngine: (signal: AbortSignal) => Promise<void>;
  readonly onFile: (file: { readonly name: string; readonly index: number; readonly count: number }) => void;
  readonly onProgress: (progress: Progress) => void;
  readonly signal: AbortSignal;
  readonly now: () => number;
  readonly tuning?: Partial<Tuning>;
}

export interface Pulled {
  readonly entry: StoredModel;
  readonly facts: ModelFacts;
  /** Whose hash the files match; null if they were compared with none. */
  readonly verifiedBy: 'owner' | 'catalogue' | 'repository' | null;
  /** Why the usual projector was left out, or null. */
  readonly leftOut: LeftOut | null;
}

/** `audio`: the projector reads only audio. `hash`: the expected hash is that of the model without the projector. */
type LeftOut = 'audio' | 'hash';

/**
 * A later call resumes a failed download. Throws {@link DownloadError}, ModelFileError or ModelStoreError, each with a sentence for the
 * Mac's owner, or the signal's reason.
 */
export async function pull(options: PullOptions): Promise<Pulled> {
  const { modelRepository, signal } = options;
  const source = readSource(options.source);
  switch (source.kind) {
    case 'file':
      return await addLocal(resolve(source.path), options);
    case 'address': {
      const [model] = await withFreeNames([addressFile(source.url)], addressPrefix(source.url), options);
      return await pullFiles([model], addressProjector(model, options.projector), options);
    }
    case 'repository': {
      const entries = await repositoryEntries(source, modelRepository, signal);
      const folder = imageFolderOf(source, entries, modelRepository);
      const known = knownModel(source.repository);
      if ((folder !== null || known !== null) && options.projector.kind === 'named') {
        throw new DownloadError(`${source.repository} holds an image model, which takes no projector`);
      }
      if (folder !== null) return await pullFolder(folder, options);
      if (known !== null) return await pullKnown(source, known, entries, options);
      const { projector } = options;
      const requested = projector.kind === 'named' ? projector.name : null;
      const file = projector.kind === 'none' ? null : repositoryProjectorFile(source, entries, requested, modelRepository);
      const files = repositoryFiles(source, entries, modelRepository);
      return await pullFiles(await withFreeNames(files, source.repository, options), file, options);
    }
    default:
      return source satisfies never;
  }
}

function addressPrefix(url: string): string {
  const { host, pathname } = new URL(url);
  return `${host}${dirname(pathname)}`;
}

/** Renames the files of a model if another model has a file of the same name with other content. Ignores case, as a Mac does. */
async function withFreeNames<T extends readonly RemoteFile[]>(
  files: T,
  prefix: string,
  { store, source, hashes, signal }: PullOptions,
): Promise<T> {
  const others = store.entries().filter((entry) => entry.source !== source);
  const used = new Set(others.flatMap((entry) => entry.files.map((file) => file.toLowerCase())));
  const isFree = async ({ name, sha256 }: RemoteFile): Promise<boolean> => {
    if (!used.has(name.toLowerCase())) return true;
    const path = join(store.directory, name);
    return sha256 !== null && existsSync(path) && (await hashes.hashFile(path, signal)) === sha256;
  };
  const areFree = async (all: readonly RemoteFile[]): Promise<boolean> => {
    for (const file of all) if (!(await isFree(file))) return false;
    return true;
  };
  const renamed = (nameOf: (name: string) => string): T => files.map((file) => ({ ...file, name: nameOf(file.name) })) as unknown as T;
  if (await areFree(files)) return files;
  const prefixed = renamed((name) => safeName(`${prefix}/${name}`.replaceAll('/', '--')));
  if (await areFree(prefixed)) return prefixed;
  const tag = createHash('sha256').update(source).digest('hex').slice(0, 16);
  return renamed((name) => `${tag}--${name}`);
}

/** Adds a local file or folder where it is, with its projector. */
async function addLocal(path: string, options: PullOptions): Promise<Pulled> {
  const { hashes, projector, signal } = options;
  const beside = projector.kind === 'usual' ? adjacentProjectorPath(path) : null;
  const facts = readModelFacts(path, projector.kind === 'named' ? resolve(projector.name) : beside);
  if (facts.image?.engine === 'stable-diffusion.cpp') await options.installEngine(signal);
  const candidate = async (model: ModelFacts): Promise<Candidate> => {
    return { facts: model, files: model.files, sha256: await hashes.hashModel(model.files, signal), isListed: false };
  };
  return await addModel(options, await candidate(facts), beside === null ? null : await candidate(readModelFacts(path)));
}

/** The projector of a model at a URL. Throws {@link DownloadError} unless it is named by a URL too. */
function addressProjector({ name }: RemoteFile, projector: ProjectorChoice): RemoteFile | null {
  if (projector.kind !== 'named') return null;
  const place = readSource(projector.name);
  if (place.kind !== 'address') throw new DownloadError('the projector of a model at an address must be an address too');
  return addressFile(place.url, `mmproj-${name}`);
}

/** Pulls the files of a GGUF model, and its projector if any. */
async function pullFiles(files: readonly RemoteFile[], projector: RemoteFile | null, options: PullOptions): Promise<Pulled> {
  const { store } = options;
  const neededFiles = filesToPull(files, projector, options);
  const sha256s = await fetchFiles(neededFiles, neededFiles.length === 1 ? options.sha256 : null, options);
  const path = join(store.directory, files[0]?.name ?? '');
  const candidate = (facts: ModelFacts): Candidate => {
    const used = neededFiles.slice(0, facts.vision === null ? files.length : neededFiles.length);
    if (facts.files.length !== used.length)
      throw new DownloadError(`the model has ${facts.files.length} files, and ${used.length} were found`);
    return {
      facts,
      files: used.map(({ name }) => name),
      sha256: modelHash(sha256s.slice(0, used.length)),
      isListed: used.every((file) => file.sha256 !== null),
    };
  };
  if (projector === null) return await addModel(options, candidate(readModelFacts(path)), null);
  if (neededFiles.length === files.length) return { ...(await addModel(options, candidate(readModelFacts(path)), null)), leftOut: 'hash' };
  const isChosen = options.projector.kind === 'named';
  try {
    const facts = readModelFacts(path, join(store.directory, projector.name));
    const pulled = await addModel(options, candidate(facts), isChosen ? null : candidate(readModelFacts(path)));
    if (pulled.facts.vision === null) store.deleteUnused([projector.name]);
    return pulled;
  } catch (error) {
    if (!(error instanceof AudioProjectorError) || isChosen) throw error;
    const pulled = await addModel(options, candidate(readModelFacts(path)), null);
    store.deleteUnused([projector.name]);
    return { ...pulled, leftOut: 'audio' };
  }
}

/** The files and the projector, or only the files if the owner expects their hash. Throws {@link DownloadError} if no hash can match. */
function filesToPull(
  files: readonly RemoteFile[],
  projector: RemoteFile | null,
  { sha256, projector: choice }: PullOptions,
): readonly RemoteFile[] {
  if (projector === null) return files;
  const all = [...files, projector];
  const alone = hashOf(files);
  if (sha256 === null || alone === null) return all;
  if (sha256 === alone && choice.kind === 'usual') return files;
  const together = hashOf(all);
  if (together === null || together === sha256) return all;
  throw new DownloadError(
    `the repository has another model than the requested one: its SHA-256 is ${together}, or ${alone} without the projector`,
  );
}

/** Hash of a model from the listed hashes; null if one is missing. */
function hashOf(files: readonly RemoteFile[]): string | null {
  const known = files.flatMap(({ sha256 }) => sha256 ?? []);
  return known.length === files.length ? modelHash(known) : null;
}

/** Downloads files unless present, after checking that the disk has room for all. Returns their hashes. */
async function fetchFiles(files: readonly RemoteFile[], requiredSha256: string | null, options: PullOptions): Promise<string[]> {
  const { directory } = options.store;
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  await requireSpace(
    join(directory, 'library.json'),
    files.reduce((sum, file) => sum + missingBytes(file, directory), 0),
  );
  const sha256s: string[] = [];
  for (const [index, file] of files.entries()) {
    options.onFile({ name: file.name, index, count: files.length });
    mkdirSync(dirname(join(directory, file.name)), { recursive: true, mode: 0o700 });
    sha256s.push(await fetchFile(file, requiredSha256, options));
  }
  return sha256s;
}

/** Disk space that a download still needs. Partial files are sparse, so this counts their blocks, not their length. */
function missingBytes({ name, bytes }: RemoteFile, directory: string): number {
  const stored = [name, `${name}.part`].map((each) => statSync(join(directory, each), { throwIfNoEntry: false })?.blocks ?? 0);
  return Math.max(0, (bytes ?? 0) - BLOCK_BYTES * Math.max(...stored));
}

/** Unit of `stat.blocks`. */
const BLOCK_BYTES = 512;

/** Pulls an ONNX image model into a folder of its own. Its text files need no listed hash, because they are parsed strictly. */
async function pullFolder(
  { folder, files }: { readonly folder: string; readonly files: readonly RemoteFile[] },
  options: PullOptions,
): Promise<Pulled> {
  const { store, hashes, signal } = options;
  await fetchFiles(files, null, options);
  const path = join(store.directory, folder);
  const facts = readModelFacts(path);
  return await addModel(
    options,
    {
      facts,
      files: facts.files.map((file) => relative(store.directory, file)),
      sha256: await hashes.hashModel(facts.files, signal),
      isListed: files.every(({ name, sha256 }) => sha256 !== null || /\.(?:json|txt)$/.test(name)),
      folder,
    },
    null,
  );
}

/** Pulls a quantized image model and its companions into a folder of their own. Installs stable-diffusion.cpp if missing. */
async function pullKnown(source: Repository, known: KnownModel, entries: Entries, options: PullOptions): Promise<Pulled> {
  const { store, hashes, modelRepository, signal } = options;
  const [model, ...others] = repositoryFiles(source, entries, modelRepository);
  if (model === undefined || others.length > 0)
    throw new DownloadError(`${source.repository} splits the model into several files, which is not supported`);
  const companions = await Promise.all(
    Object.entries(known.companions).map(async ([part, { repository, path }]) => {
      const place: Repository = { kind: 'repository', repository, quantization: null };
      return [part, repositoryFile(place, await repositoryEntries(place, modelRepository, signal), path, modelRepository)] as const;
    }),
  );
  const parts = [['model', model] as const, ...companions];
  const folder = `${source.repository.replace('/', '--')}--${model.name.replace(/\.gguf$/i, '')}`;
  await options.installEngine(signal);
  await fetchFiles(
    parts.map(([, file]) => ({ ...file, name: join(folder, file.name) })),
    null,
    options,
  );
  const { repository: _, companions: __, ...description } = known;
  const files = Object.fromEntries(parts.map(([part, file]) => [part, file.name]));
  const quantization = source.quantization ?? 'GGUF';
  const path = join(store.directory, folder);
  writeFileSync(
    join(path, DESCRIPTION_FILE),
    `${JSON.stringify({ engine: 'stable-diffusion.cpp', quantization, files, ...description }, null, 2)}\n`,
  );
  const facts = readModelFacts(path);
  return await addModel(
    options,
    {
      facts,
      files: facts.files.map((file) => relative(store.directory, file)),
      sha256: await hashes.hashModel(facts.files, signal),
      isListed: parts.every(([, { sha256 }]) => sha256 !== null),
      folder,
    },
    null,
  );
}

/** Downloads one file unless present. Returns its SHA-256. */
async function fetchFile(file: RemoteFile, requiredSha256: string | null, options: PullOptions): Promise<string> {
  const { store, hashes, signal, onProgress, tuning } = options;
  const path = join(store.directory, file.name);
  const expected = requiredSha256 ?? file.sha256;
  if (expected !== null && file.sha256 !== null && expected !== file.sha256) {
    throw new DownloadError(`the repository has another file than the requested one: its SHA-256 is ${file.sha256}`);
  }
  if (existsSync(path) && expected !== null && (await hashes.hashFile(path, signal)) === expected) return expected;
  const { url, headers, bytes } = file;
  const got = await download({
    url,
    headers,
    file: path,
    bytes,
    sha256: expected,
    onProgress,
    signal,
    ...(tuning === undefined ? {} : { tuning }),
  });
  await hashes.cacheHash(path, got.sha256, got.stamp);
  return got.sha256;
}

/** A model on the disk, before its hash is compared with the owner's and the catalogue's. */
interface Candidate {
  readonly facts: ModelFacts;
  /** Names in the store's folder, or absolute paths. */
  readonly files: readonly string[];
  readonly sha256: string;
  /** Whether the source lists the hashes of all files with weights. The download has compared them. */
  readonly isListed: boolean;
  readonly folder?: string;
}

/** Adds a model to the store. If only the hash of `alone`, the model without its projector, is expected, adds `alone` instead. */
async function addModel(options: PullOptions, model: Candidate, alone: Candidate | null): Promise<Pulled> {
  const { store, now } = options;
  const id = options.id ?? model.facts.id;
  const allowed = await options.catalogueHashesOf(id);
  const isExpected = (sha256: string): boolean =>
    (options.sha256 === null || options.sha256 === sha256) && (allowed === null || allowed.includes(sha256));
  const isLeftOut = alone !== null && !isExpected(model.sha256) && isExpected(alone.sha256);
  const { facts, files, sha256, isListed, folder = facts.image === null ? files[0] : facts.path } = isLeftOut ? alone : model;
  if (options.sha256 !== null && options.sha256 !== sha256) {
    throw new DownloadError(`this is not the requested model: its SHA-256 is ${sha256}`);
  }
  if (allowed !== null && !allowed.includes(sha256)) {
    throw new DownloadError(
      `the catalog lists another file as ${id}: the SHA-256 of this file is ${sha256}; pull the listed file, or choose another --id`,
    );
  }
  const replaced = store.find(id);
  const entry: StoredModel = {
    id,
    file: folder as string,
    files: [...files],
    ...(facts.vision === null ? {} : { projector: files.at(-1) as string }),
    sha256,
    bytes: facts.fileBytes,
    source: options.source,
    pulled_at: now(),
    use: replaced?.use ?? null,
  };
  store.put(entry);
  const verifiedBy = options.sha256 !== null ? 'owner' : allowed !== null ? 'catalogue' : isListed ? 'repository' : null;
  return { entry, facts: { ...facts, id }, verifiedBy, leftOut: isLeftOut ? 'hash' : null };
}
