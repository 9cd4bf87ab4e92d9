/**
 * Puts a model into the library: finds its files, downloads what is not here, checks every file against what its source says,
 * reads the header, and only then takes it into the list. A pull that broke off goes on where it stopped.
 */
import { existsSync, mkdirSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { type FileHashes, modelHash } from '../file-hash.js';
import { type ModelFacts, readModelFacts } from '../model-facts.js';
import { DownloadError, download, type Progress, type Tuning } from './download.js';
import type { Library, LibraryEntry } from './library.js';
import { addressFile, type Hub, imageFolderOf, type RemoteFile, readSource, repositoryEntries, repositoryFiles } from './sources.js';

export interface PullOptions {
  readonly source: string;
  readonly library: Library;
  readonly hashes: FileHashes;
  readonly hub: Hub;
  /** In place of the id that the model's name gives. */
  readonly id: string | null;
  /** What the model's hash must be, as the owner says. */
  readonly sha256: string | null;
  /** Hashes that a catalogue allows for an id; null: it says nothing of it. */
  readonly catalogued: (id: string) => Promise<readonly string[] | null>;
  readonly onFile: (file: { readonly name: string; readonly index: number; readonly count: number }) => void;
  readonly onProgress: (progress: Progress) => void;
  readonly signal: AbortSignal;
  readonly now: () => number;
  readonly tuning?: Partial<Tuning>;
}

export interface Pulled {
  readonly entry: LibraryEntry;
  readonly facts: ModelFacts;
  /** What its hash was compared with. */
  readonly verifiedBy: 'owner' | 'catalogue' | 'repository' | null;
}

/** Throws {@link DownloadError}, ModelFileError or LibraryError, each with a sentence for the owner. */
export async function pull(options: PullOptions): Promise<Pulled> {
  const { library, hashes, hub, signal } = options;
  const source = readSource(options.source);
  if (source.kind === 'file') {
    const facts = readModelFacts(resolve(source.path));
    return await take(options, facts, await hashes.ofModel(facts.files, signal), facts.files, false);
  }
  const entries = source.kind === 'repository' ? await repositoryEntries(source, hub, signal) : [];
  const folder = source.kind === 'repository' ? imageFolderOf(source, entries, hub) : null;
  if (folder !== null) return await pullFolder(folder, options);
  const files = source.kind === 'address' ? [addressFile(source.url)] : repositoryFiles(source, entries, hub);
  mkdirSync(library.directory, { recursive: true, mode: 0o700 });
  const sha256s: string[] = [];
  for (const [index, file] of files.entries()) {
    options.onFile({ name: file.name, index, count: files.length });
    sha256s.push(await fetchFile(file, files.length === 1 ? options.sha256 : null, options));
  }
  const names = files.map(({ name }) => name);
  const facts = readModelFacts(join(library.directory, names[0] as string));
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

/** An image model in a folder of its own. What tells the hash of its weights has told enough: the rest is checked by reading it. */
async function pullFolder(
  { folder, files }: { readonly folder: string; readonly files: readonly RemoteFile[] },
  options: PullOptions,
): Promise<Pulled> {
  const { library, hashes, signal } = options;
  for (const [index, file] of files.entries()) {
    options.onFile({ name: file.name, index, count: files.length });
    mkdirSync(dirname(join(library.directory, file.name)), { recursive: true, mode: 0o700 });
    await fetchFile(file, null, options);
  }
  const path = join(library.directory, folder);
  const facts = readModelFacts(path);
  return await take(
    options,
    facts,
    await hashes.ofModel(facts.files, signal),
    facts.files.map((file) => relative(library.directory, file)),
    files.every(({ name, sha256 }) => sha256 !== null || /\.(?:json|txt)$/.test(name)),
    folder,
  );
}

/** Downloads one file, unless it is here. Returns its SHA-256. */
async function fetchFile(file: RemoteFile, wanted: string | null, options: PullOptions): Promise<string> {
  const { library, hashes, signal, onProgress, tuning } = options;
  const path = join(library.directory, file.name);
  const expected = wanted ?? file.sha256;
  if (expected !== null && file.sha256 !== null && expected !== file.sha256) {
    throw new DownloadError(`the repository has another file than the one you asked for: its SHA-256 is ${file.sha256}`);
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
  await hashes.keep(path, got.sha256);
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
  const { library, now } = options;
  const id = options.id ?? facts.id;
  if (options.sha256 !== null && options.sha256 !== sha256) {
    throw new DownloadError(`this is not the model that you asked for: its SHA-256 is ${sha256}`);
  }
  const allowed = await options.catalogued(id);
  if (allowed !== null && !allowed.includes(sha256)) {
    throw new DownloadError(
      `the catalogue lists another file as ${id}: this one's SHA-256 is ${sha256}; pull the one it names, or give this one another --id`,
    );
  }
  const entry: LibraryEntry = {
    id,
    file: folder ?? (files[0] as string),
    files: [...files],
    sha256,
    bytes: facts.fileBytes,
    source: options.source,
    pulled_at: now(),
    use: library.find(id)?.use ?? null,
  };
  library.put(entry);
  const verifiedBy = options.sha256 !== null ? 'owner' : allowed !== null ? 'catalogue' : fromRepository ? 'repository' : null;
  return { entry, facts: { ...facts, id }, verifiedBy };
}
