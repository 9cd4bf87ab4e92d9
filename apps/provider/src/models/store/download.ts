/**
 * `download`: a large file in parallel ranges, resumed after a stop. A file changed on the server starts over (If-Range).
 *
 * The file gets its final name only after length and SHA-256 are checked.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open, readFile, rename, rm, stat, statfs, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import { byteSizeText } from '../byte-size-text.js';
import { type Probe, probe, type RangeSource, readRange, readWhole, TransferError } from './http-ranges.js';

export interface Download extends RangeSource {
  /** Path of the file. `.part` and `.part.json` lie beside the path until completion. */
  readonly file: string;
  /** Expected length; null: unknown. */
  readonly bytes: number | null;
  /** Hexadecimal. */
  readonly sha256: string | null;
  readonly onProgress?: (progress: Progress) => void;
  readonly signal: AbortSignal;
  readonly tuning?: Partial<Tuning>;
}

export interface Progress {
  readonly phase: 'downloading' | 'verifying';
  readonly bytes: number;
  /** Null: the server reports no length. */
  readonly total: number | null;
}

export interface Tuning {
  readonly chunkBytes: number;
  readonly connections: number;
  /** Consecutive failures after which a chunk fails. */
  readonly tries: number;
  /** First pause after a failure, in milliseconds; doubles up to ten seconds. */
  readonly retryMs: number;
  /** Silence after which a connection is closed, in milliseconds. */
  readonly stallMs: number;
}

const TUNING: Tuning = { chunkBytes: 32 << 20, connections: 6, tries: 8, retryMs: 250, stallMs: 30_000 };
const LONGEST_PAUSE_MS = 10_000;
/** Free bytes that a download leaves on the disk. */
const SPARE_BYTES = 256 << 20;

/** The download failed. The message is one sentence for the owner. */
export class DownloadError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'DownloadError';
  }
}

const StateSchema = Type.Object({
  version: Type.Literal(1),
  bytes: Type.Integer({ minimum: 0 }),
  chunk_bytes: Type.Integer({ minimum: 1 }),
  validator: Type.Union([Type.String(), Type.Null()]),
  done: Type.Array(Type.Integer({ minimum: 0 })),
  /** Chunk index and stored bytes of chunks that a stopped download began. */
  partial: Type.Optional(Type.Array(Type.Tuple([Type.Integer({ minimum: 0 }), Type.Integer({ minimum: 1 })]))),
});
type State = Static<typeof StateSchema>;
const stateValidator = Compile(StateSchema);

/**
 * Resolves with length and hash. Partial data is stored for the next attempt.
 *
 * @throws {DownloadError} Or the signal's reason.
 */
export async function download(options: Download): Promise<{ readonly bytes: number; readonly sha256: string }> {
  const tuning = { ...TUNING, ...options.tuning };
  for (let round = 0; ; round++) {
    try {
      return await attempt(options, tuning);
    } catch (error) {
      options.signal.throwIfAborted();
      if (error instanceof TransferError) {
        if (error.kind !== 'changed' || round > 0) throw new DownloadError(error.message);
        await discard(options.file);
      } else throw error;
    }
  }
}

async function attempt(options: Download, tuning: Tuning): Promise<{ bytes: number; sha256: string }> {
  const { file, signal } = options;
  const found = await withRetries(() => probe(options, signal, tuning.stallMs), tuning, signal);
  if (options.bytes !== null && found.bytes !== null && found.bytes !== options.bytes) {
    throw new DownloadError(`the server offers ${found.bytes} bytes, and the file should have ${options.bytes}`);
  }
  const part = `${file}.part`;
  if (found.ranges && found.bytes !== null) await inRanges(options, tuning, found, found.bytes, part);
  else await inOne(options, tuning, found.bytes, part);
  return await finish(options, part);
}

async function inRanges(options: Download, tuning: Tuning, { validator }: Probe, bytes: number, part: string): Promise<void> {
  const { file, signal, onProgress } = options;
  const state = (await resumable(options, bytes, validator)) ?? {
    version: 1,
    bytes,
    chunk_bytes: tuning.chunkBytes,
    validator,
    done: [],
  };
  const chunks = Math.ceil(bytes / state.chunk_bytes);
  const sizeOf = (index: number): number => Math.min(state.chunk_bytes, bytes - index * state.chunk_bytes);
  const isComplete = ([index, got]: readonly [number, number]): boolean => got === sizeOf(index);
  const partial = state.partial ?? [];
  const done = new Set([...state.done, ...partial.filter(isComplete).map(([index]) => index)]);
  const begun = new Map(partial.filter((chunk) => !isComplete(chunk)));
  let saved = Promise.resolve();
  let written = 0;
  for (const index of done) written += sizeOf(index);
  for (const got of begun.values()) written += got;
  await requireSpace(file, bytes - written);
  // Serialised, so an older state never overwrites a newer one.
  const save = (): Promise<void> => {
    saved = saved.then(() => saveState(file, { ...state, done: [...done], partial: [...begun] }));
    return saved;
  };
  const handle = await open(part, written === 0 ? 'w' : 'r+');
  const failed = new AbortController();
  const stop = failed.signal;
  const onAbort = (): void => failed.abort(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    onProgress?.({ phase: 'downloading', bytes: written, total: bytes });
    const waiting = Array.from({ length: chunks }, (_, index) => index).filter((index) => !done.has(index));
    const work = async (): Promise<void> => {
      for (let index = waiting.shift(); index !== undefined; index = waiting.shift()) {
        const start = index * state.chunk_bytes;
        let got = begun.get(index) ?? 0;
        // A broken connection resumes at its position; only failures without progress in between count.
        const rest = async (): Promise<void> => {
          for await (const bytesRead of readRange(
            options,
            { start: start + got, end: start + sizeOf(index) },
            validator,
            stop,
            tuning.stallMs,
          )) {
            await writeAll(handle, bytesRead, start + got);
            got += bytesRead.length;
            begun.set(index, got);
            written += bytesRead.length;
            onProgress?.({ phase: 'downloading', bytes: written, total: bytes });
          }
        };
        await withRetries(rest, tuning, stop, () => got);
        done.add(index);
        begun.delete(index);
        await save();
      }
    };
    const workers = Array.from({ length: Math.min(tuning.connections, waiting.length) }, () =>
      work().catch((error: unknown) => {
        failed.abort(error);
        throw error;
      }),
    );
    const results = await Promise.allSettled(workers);
    if (failed.signal.aborted) {
      await save();
      throw failed.signal.reason;
    }
    for (const result of results) if (result.status === 'rejected') throw result.reason;
    await handle.sync();
  } finally {
    signal.removeEventListener('abort', onAbort);
    await handle.close();
  }
}

/** Download in one piece, for servers without ranges. Restarts from the beginning after a failure. */
async function inOne(options: Download, tuning: Tuning, bytes: number | null, part: string): Promise<void> {
  const { file, signal, onProgress } = options;
  await requireSpace(file, bytes ?? 0);
  const whole = async (): Promise<void> => {
    const handle = await open(part, 'w');
    try {
      let written = 0;
      onProgress?.({ phase: 'downloading', bytes: written, total: bytes });
      for await (const bytesRead of readWhole(options, signal, tuning.stallMs)) {
        await writeAll(handle, bytesRead, written);
        written += bytesRead.length;
        // A server without a length might send forever.
        if (written > (options.bytes ?? Number.POSITIVE_INFINITY))
          throw new DownloadError('the server sends more than the file should have');
        onProgress?.({ phase: 'downloading', bytes: written, total: bytes });
      }
      if (bytes !== null && written !== bytes) throw new TransferError('broken', `the server sent ${written} of ${bytes} bytes`);
      await handle.sync();
    } finally {
      await handle.close();
    }
  };
  await withRetries(whole, tuning, signal);
}

/** Retries after transient failures. `progress` returns the current position: progress resets the failure count. */
async function withRetries<T>(work: () => Promise<T>, tuning: Tuning, signal: AbortSignal, progress: () => number = () => 0): Promise<T> {
  let failures = 0;
  let before = progress();
  for (;;) {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof TransferError) || error.kind !== 'broken') throw error;
      failures = progress() > before ? 1 : failures + 1;
      before = progress();
      if (failures >= tuning.tries) throw error;
      await delay(Math.min(LONGEST_PAUSE_MS, tuning.retryMs * 2 ** (failures - 1)), undefined, { signal });
    }
  }
}

async function finish({ file, sha256: expected, onProgress, signal }: Download, part: string): Promise<{ bytes: number; sha256: string }> {
  const hash = createHash('sha256');
  const { size } = await stat(part);
  let bytes = 0;
  for await (const chunk of createReadStream(part, { highWaterMark: 1 << 20, signal })) {
    hash.update(chunk as Buffer);
    bytes += (chunk as Buffer).length;
    onProgress?.({ phase: 'verifying', bytes, total: size });
  }
  const sha256 = hash.digest('hex');
  if (expected !== null && sha256 !== expected) {
    await discard(file);
    throw new DownloadError(`the downloaded file is not the requested one: its SHA-256 is ${sha256}, and it should be ${expected}`);
  }
  await rename(part, file);
  await discard(file);
  return { bytes, sha256 };
}

/** State of an earlier download of the same file, matched by the server's validator or by the expected hash. */
async function resumable({ file, sha256 }: Download, bytes: number, validator: string | null): Promise<State | null> {
  let state: unknown;
  try {
    await stat(`${file}.part`);
    state = JSON.parse(await readFile(`${file}.part.json`, 'utf8'));
  } catch {
    return null;
  }
  if (!stateValidator.Check(state) || state.bytes !== bytes || state.validator !== validator) return null;
  if (validator === null && sha256 === null) return null;
  const chunks = Math.ceil(bytes / state.chunk_bytes);
  const { done, partial = [] } = state;
  const sizeOf = (index: number): number => Math.min(state.chunk_bytes, bytes - index * state.chunk_bytes);
  const isValid = partial.every(([index, got]) => index < chunks && !done.includes(index) && got <= sizeOf(index));
  return isValid && done.every((index) => index < chunks) ? state : null;
}

async function saveState(file: string, state: State): Promise<void> {
  const draft = `${file}.part.json.new`;
  await writeFile(draft, JSON.stringify(state), { mode: 0o600 });
  await rename(draft, `${file}.part.json`);
}

async function writeAll(handle: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    done += (await handle.write(bytes, done, bytes.length - done, position + done)).bytesWritten;
  }
}

/** Removes the partial file and its progress files, including drafts of killed processes. */
async function discard(file: string): Promise<void> {
  for (const suffix of ['.part', '.part.json', '.part.json.new']) await rm(file + suffix, { force: true });
}

/** Throws {@link DownloadError} unless the disk of a file has room for so many bytes. */
export async function requireSpace(file: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(dirname(file));
  const free = bavail * bsize;
  if (bytes + SPARE_BYTES <= free) return;
  throw new DownloadError(`not enough disk space: ${byteSizeText(bytes)} to download, ${byteSizeText(free)} free`);
}
