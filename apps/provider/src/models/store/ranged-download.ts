/** `downloadRanges` downloads a file in chunks over parallel connections, and stores its progress for a later attempt. */
import { type FileHandle, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { lazyValidator } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import { readRange } from './http-ranges.js';
import { type Download, requireSpace, type Tuning, withRetries, writeAll } from './transfer.js';

/** Content of the progress file, `.part.json`. */
const StateSchema = Type.Object({
  version: Type.Literal(1),
  bytes: Type.Integer({ minimum: 0 }),
  chunk_bytes: Type.Integer({ minimum: 1 }),
  /** `Probe.validator`: the server's version of the file. */
  validator: Type.Union([Type.String(), Type.Null()]),
  done: Type.Array(Type.Integer({ minimum: 0 })),
  /** Index and stored bytes of incomplete chunks. */
  partial: Type.Optional(Type.Array(Type.Tuple([Type.Integer({ minimum: 0 }), Type.Integer({ minimum: 1 })]))),
});
type State = Static<typeof StateSchema>;
const stateValidator = lazyValidator(StateSchema);

interface RemoteVersion {
  readonly bytes: number;
  readonly validator: string | null;
}

/**
 * Writes the file's content to `${file}.part`, and its progress to `${file}.part.json`.
 *
 * @throws {TransferError} Also {@link DownloadError}, or the signal's reason.
 */
export async function downloadRanges(options: Download, tuning: Tuning, remote: RemoteVersion): Promise<void> {
  const { file, signal, freeBytes } = options;
  const state = (await readResumableState(options, remote)) ?? newState(remote, tuning);
  const progress = new ChunkProgress(file, state);
  await requireSpace(file, remote.bytes - progress.writtenBytes, freeBytes);
  const handle = await open(`${file}.part`, progress.writtenBytes === 0 ? 'w' : 'r+');
  const failure = new AbortController();
  const onAbort = (): void => failure.abort(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    await runWorkers({ options, tuning, remote, progress, handle }, failure);
    await handle.sync();
  } finally {
    signal.removeEventListener('abort', onAbort);
    await handle.close();
  }
}

interface RangedDownload {
  readonly options: Download;
  readonly tuning: Tuning;
  readonly remote: RemoteVersion;
  readonly progress: ChunkProgress;
  readonly handle: FileHandle;
}

/** Downloads all missing chunks over parallel connections. The first failure stops all workers. */
async function runWorkers(download: RangedDownload, failure: AbortController): Promise<void> {
  const { options, tuning, remote, progress } = download;
  options.onProgress?.({ phase: 'downloading', bytes: progress.writtenBytes, total: remote.bytes });
  const waiting = progress.missingChunks();
  const work = async (): Promise<void> => {
    for (let index = waiting.shift(); index !== undefined; index = waiting.shift()) {
      await downloadChunk(download, index, failure.signal);
    }
  };
  const workers = Array.from({ length: Math.min(tuning.connections, waiting.length) }, () =>
    work().catch((error: unknown) => {
      failure.abort(error);
      throw error;
    }),
  );
  const results = await Promise.allSettled(workers);
  if (failure.signal.aborted) {
    await progress.save();
    throw failure.signal.reason;
  }
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

/** Downloads the rest of a chunk. After a lost connection, continues where it ended. */
async function downloadChunk(
  { options, tuning, remote, progress, handle }: RangedDownload,
  index: number,
  signal: AbortSignal,
): Promise<void> {
  const { start, end } = progress.boundsOf(index);
  const readRest = async (): Promise<void> => {
    const range = { start: start + progress.bytesOf(index), end };
    for await (const bytes of readRange(options, range, remote.validator, signal, tuning.stallMs)) {
      await writeAll(handle, bytes, start + progress.bytesOf(index));
      progress.add(index, bytes.length);
      options.onProgress?.({ phase: 'downloading', bytes: progress.writtenBytes, total: remote.bytes });
    }
  };
  await withRetries(readRest, tuning, signal, () => progress.bytesOf(index));
  progress.complete(index);
  await progress.save();
}

/** Stored bytes per chunk, in memory and in the progress file. */
class ChunkProgress {
  readonly #file: string;
  readonly #state: State;
  readonly #done: Set<number>;
  readonly #bytesByPartialChunk: Map<number, number>;
  #writtenBytes = 0;
  #saving = Promise.resolve();

  constructor(file: string, state: State) {
    this.#file = file;
    this.#state = state;
    const partial = state.partial ?? [];
    const isComplete = ([index, stored]: readonly [number, number]): boolean => stored === chunkBytes(state, index);
    this.#done = new Set([...state.done, ...partial.filter(isComplete).map(([index]) => index)]);
    this.#bytesByPartialChunk = new Map(partial.filter((chunk) => !isComplete(chunk)));
    for (const index of this.#done) this.#writtenBytes += chunkBytes(state, index);
    for (const stored of this.#bytesByPartialChunk.values()) this.#writtenBytes += stored;
  }

  get writtenBytes(): number {
    return this.#writtenBytes;
  }

  missingChunks(): number[] {
    return Array.from({ length: chunkCount(this.#state) }, (_, index) => index).filter((index) => !this.#done.has(index));
  }

  /** Offsets of a chunk in the file; `end` is exclusive. */
  boundsOf(index: number): { readonly start: number; readonly end: number } {
    const start = index * this.#state.chunk_bytes;
    return { start, end: start + chunkBytes(this.#state, index) };
  }

  bytesOf(index: number): number {
    return this.#bytesByPartialChunk.get(index) ?? 0;
  }

  add(index: number, bytes: number): void {
    this.#bytesByPartialChunk.set(index, this.bytesOf(index) + bytes);
    this.#writtenBytes += bytes;
  }

  complete(index: number): void {
    this.#done.add(index);
    this.#bytesByPartialChunk.delete(index);
  }

  /** Writes the progress file. Calls wait for each other, so that an older state does not overwrite a newer one. */
  save(): Promise<void> {
    this.#saving = this.#saving.then(() =>
      saveState(this.#file, { ...this.#state, done: [...this.#done], partial: [...this.#bytesByPartialChunk] }),
    );
    return this.#saving;
  }
}

function newState({ bytes, validator }: RemoteVersion, { chunkBytes }: Tuning): State {
  return { version: 1, bytes, chunk_bytes: chunkBytes, validator, done: [] };
}

function chunkCount({ bytes, chunk_bytes }: State): number {
  return Math.ceil(bytes / chunk_bytes);
}

function chunkBytes({ bytes, chunk_bytes }: State, index: number): number {
  return Math.min(chunk_bytes, bytes - index * chunk_bytes);
}

/** State of an earlier download of the same version; null if there is none. Without a validator, an expected hash is required. */
async function readResumableState({ file, sha256 }: Download, { bytes, validator }: RemoteVersion): Promise<State | null> {
  let state: unknown;
  try {
    await stat(`${file}.part`);
    state = JSON.parse(await readFile(`${file}.part.json`, 'utf8'));
  } catch {
    return null;
  }
  if (!stateValidator().Check(state) || state.bytes !== bytes || state.validator !== validator) return null;
  if (validator === null && sha256 === null) return null;
  const { done, partial = [] } = state;
  const count = chunkCount(state);
  const isValid = ([index, stored]: readonly [number, number]): boolean =>
    index < count && !done.includes(index) && stored <= chunkBytes(state, index);
  return partial.every(isValid) && done.every((index) => index < count) ? state : null;
}

async function saveState(file: string, state: State): Promise<void> {
  const draft = `${file}.part.json.new`;
  await writeFile(draft, JSON.stringify(state), { mode: 0o600 });
  await rename(draft, `${file}.part.json`);
}

/** Removes the partial file and its progress files, including drafts of killed processes. */
export async function discardPartialFile(file: string): Promise<void> {
  for (const suffix of ['.part', '.part.json', '.part.json.new']) await rm(file + suffix, { force: true });
}
