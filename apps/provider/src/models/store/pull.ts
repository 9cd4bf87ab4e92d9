/** `pull` downloads and verifies the files of a model, and adds the model to the store last. Resumable. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { type FileHashes, modelHash } from '../file-hash.js';
import { type KnownModel, knownModel } from '../image/known-models.js';
import { DESCRIPTION } from '../image/stable-diffusion-folder.js';
import { type ModelFacts, readModelFacts } from '../model-facts.js';
import { DownloadError, download, type Progress, type Tuning } from './download.js';
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
} from './model-repository.js';
import type { ModelStore, StoredModel } from './model-store.js';

export interface PullOptions {
  readonly source: string;
  readonly store: ModelStore;
  readonly hashes: FileHashes;
  readonly modelRepository: ModelRepository;
  /** Overrides the id derived from the model's name. */
  readonly id: string | null;
  /** Expected hash of the model, from the owner. */
  readonly sha256: string | null;
  /** Hashes that a catalogue allows for an id; null: not listed. */
  readonly catalogued: (id: string) => Promise<readonly string[] | null>;
  /** Installs the engine for quantized image models unless installed. */
  readonly installEngine: (signal: AbortSignal) => Promise<void>;
  readonly onFile: (file: { readonly name: string; readonly index: number; readonly count: number }) => void;
  readonly onProgress: (progress: Progress) => void;
  readonly signal: AbortSignal;
  readonly now: () => number;
  readonly tuning?: Partial<Tuning>;
}

interface Pulled {
  readonly entry: StoredModel;
  readonly facts: ModelFacts;
  /** Source of the verified hash. */
  readonly verifiedBy: 'owner' | 'catalogue' | 'repository' | null;
}

/** Throws {@link DownloadError}, ModelFileError or ModelStoreError, each with a sentence for the owner. */
export async function pull(options: PullOptions): Promise<Pulled> {
  const { store, hashes, modelRepository, signal } = options;
  const source = readSource(options.source);
  if (source.kind === 'file') {
    const facts = readModelFacts(resolve(source.path));
    if (facts.image?.engine === 'stable-diffusion.cpp') await options.installEngine(signal);
    return await take(options, facts, await hashes.ofModel(facts.files, signal), facts.files, false);
  }
  const entries = source.kind === 'repository' ? await repositoryEntries(source, modelRepository, signal) : [];
  const folder = source.kind === 'repository' ? imageFolderOf(source, entries, modelRepository) : null;
  if (folder !== null) return await pullFolder(folder, options);
  const known = source.kind === 'repository' ? knownModel(source.repository) : null;
  if (source.kind === 'repository' && known !== null) return await pullKnown(source, known, entries, options);
  const files = source.kind === 'address' ? [addressFile(source.url)] : repositoryFiles(source, entries, modelRepository);
  mkdirSync(store.directory, { recursive: true, mode: 0o700 });
  const sha256s: string[] = [];
  for (const [index, file] of files.entries()) {
    options.onFile({ name: file.name, index, count: files.length });
    sha256s.push(await fetchFile(file, files.length === 1 ? options.sha256 : null, options));
  }
  const names = files.map(({ name }) => name);
  const facts = readModelFacts(join(store.directory, names[0] as string));
  if (facts.files.length !== files.length)
    throw new DownloadError(`the model has ${facts.files.length} files, and ${files.length} were found`);
  return await take(
    options,
    facts,
    modelHash(sha256s),
    names,
    files.every(({ sha256 }) => sha256 !== null),
  );
}

/** Pulls an image model into its own folder. Verified if the repository lists the hashes of the weights; the rest is parsed. */
async function pullFolder(
  { folder, files }: { readonly folder: string; readonly files: readonly RemoteFile[] },
  options: PullOptions,
): Promise<Pulled> {
  const { store, hashes, signal } = options;
  for (const [index, file] of files.entries()) {
    options.onFile({ name: file.name, index, count: files.length });
    mkdirSync(dirname(join(store.directory, file.name)), { recursive: true, mode: 0o700 });
    await fetchFile(file, null, options);
  }
  const path = join(store.directory, folder);
  const facts = readModelFacts(path);
  return await take(
    options,
    facts,
    await hashes.ofModel(facts.files, signal),
    facts.files.map((file) => relative(store.directory, file)),
    files.every(({ name, sha256 }) => sha256 !== null || /\.(?:json|txt)$/.test(name)),
    folder,
  );
}

/** Pulls a quantized image model and its companion parts into their own folder. Installs the engine if missing. */
async function pullKnown(source: Repository, known: KnownModel, entries: Entries, options: PullOptions): Promise<Pulled> {
  const { store, hashes, modelRepository, signal } = options;
  const [model, ...others] = repositoryFiles(source, entries, modelRepository);
  if (model === undefined || others.length > 0)
    throw new DownloadError(`${source.repository} holds the model in several files, which is not supported`);
  const companions = await Promise.all(
    Object.entries(known.companions).map(async ([part, { repository, path }]) => {
      const place: Repository = { kind: 'repository', repository, quantization: null };
      return [part, repositoryFile(place, await repositoryEntries(place, modelRepository, signal), path, modelRepository)] as const;
    }),
  );
  const parts = [['model', model] as const, ...companions];
  const folder = `${source.repository.replace('/', '--')}--${model.name.replace(/\.gguf$/i, '')}`;
  await options.installEngine(signal);
  mkdirSync(join(store.directory, folder), { recursive: true, mode: 0o700 });
  for (const [index, [, file]] of parts.entries()) {
    options.onFile({ name: file.name, index, count: parts.length });
    await fetchFile({ ...file, name: join(folder, file.name) }, null, options);
  }
  const { repository: _, companions: __, ...description } = known;
  const files = Object.fromEntries(parts.map(([part, file]) => [part, file.name]));
  const quantization = source.quantization ?? 'GGUF';
  const path = join(store.directory, folder);
  writeFileSync(
    join(path, DESCRIPTION),
    `${JSON.stringify({ engine: 'stable-diffusion.cpp', quantization, files, ...description }, null, 2)}\n`,
  );
  const facts = readModelFacts(path);
  return await take(
    options,
    facts,
    await hashes.ofModel(facts.files, signal),
    facts.files.map((file) => relative(store.directory, file)),
    parts.every(([, { sha256 }]) => sha256 !== null),
    folder,
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
  if (existsSync(path) && expected !== null && (await hashes.of(path, signal)) === expected) return expected;
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
  await hashes.store(path, got.sha256);
  return got.sha256;
}

async function take(
  options: PullOptions,
  facts: ModelFacts,
  sha256: string,
  files: readonly string[],
  fromRepository: boolean,
  folder: string | null = facts.image === null ? null : facts.path,
): Promise<Pulled> {
  const { store, now } = options;
  const id = options.id ?? facts.id;
  if (options.sha256 !== null && options.sha256 !== sha256) {
    throw new DownloadError(`this is not the requested model: its SHA-256 is ${sha256}`);
  }
  const allowed = await options.catalogued(id);
  if (allowed !== null && !allowed.includes(sha256)) {
    throw new DownloadError(
      `the catalog lists another file as ${id}: this one's SHA-256 is ${sha256}; pull that file, or choose another --id`,
    );
  }
  const entry: StoredModel = {
    id,
    file: folder ?? (files[0] as string),
    files: [...files],
    sha256,
    bytes: facts.fileBytes,
    source: options.source,
    pulled_at: now(),
    use: store.find(id)?.use ?? null,
  };
  store.put(entry);
  const verifiedBy = options.sha256 !== null ? 'owner' : allowed !== null ? 'catalogue' : fromRepository ? 'repository' : null;
  return { entry, facts: { ...facts, id }, verifiedBy };
}
