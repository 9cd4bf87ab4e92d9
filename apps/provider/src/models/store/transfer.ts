/** Common parts of downloads: options, errors, retries, and checks of disk space. */
import { type FileHandle, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { byteSizeText } from '../byte-size-text.js';
import { type RangeSource, TransferError } from './http-ranges.js';

export interface Download extends RangeSource {
  /** Path of the complete file. Until then, the data is in `<file>.part`, and the progress in `<file>.part.json`. */
  readonly file: string;
  readonly bytes: number | null;
  /** Expected hash, hexadecimal; null if unknown. */
  readonly sha256: string | null;
  readonly onProgress?: (progress: Progress) => void;
  readonly signal: AbortSignal;
  readonly tuning?: Partial<Tuning>;
  /** Free bytes of a folder's disk. Default: by the file system. */
  readonly freeBytes?: (folder: string) => Promise<number>;
}

export interface Progress {
  readonly phase: 'downloading' | 'verifying';
  readonly bytes: number;
  /** Null if the length is unknown. */
  readonly total: number | null;
}

export interface Tuning {
  readonly chunkBytes: number;
  readonly connections: number;
  /** Consecutive failures after which `withRetries` gives up. */
  readonly tries: number;
  /** First pause after a failure, in milliseconds; doubles up to ten seconds. */
  readonly retryMs: number;
  /** Silence after which a connection is closed, in milliseconds. */
  readonly stallMs: number;
}

const MAX_PAUSE_MS = 10_000;
/** Free bytes that a download leaves on the disk. */
const SPARE_BYTES = 256 << 20;

/** A download or pull failed. The message is a sentence for the Mac's owner. */
export class DownloadError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'DownloadError';
  }
}

/** Repeats `work` after transient failures. `progress` returns the position; an advance since the last failure resets the count. */
export async function withRetries<T>(
  work: () => Promise<T>,
  tuning: Tuning,
  signal: AbortSignal,
  progress: () => number = () => 0,
): Promise<T> {
  let failures = 0;
  let before = progress();
  for (;;) {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof TransferError) || error.kind !== 'transient') throw error;
      failures = progress() > before ? 1 : failures + 1;
      before = progress();
      if (failures >= tuning.tries) throw error;
      await delay(Math.min(MAX_PAUSE_MS, tuning.retryMs * 2 ** (failures - 1)), undefined, { signal });
    }
  }
}

export async function writeAll(handle: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    done += (await handle.write(bytes, done, bytes.length - done, position + done)).bytesWritten;
  }
}

/** Throws {@link DownloadError} unless the file's disk has this many free bytes and `SPARE_BYTES` more. */
export async function requireSpace(file: string, bytes: number, freeBytes = freeBytesOf): Promise<void> {
  const free = await freeBytes(dirname(file));
  if (bytes + SPARE_BYTES <= free) return;
  throw new DownloadError(`not enough disk space: ${byteSizeText(bytes)} to download, ${byteSizeText(free)} free`);
}

/** Throws {@link DownloadError} unless the disk has `SPARE_BYTES`, during a download of unknown length. */
export async function requireSpareSpace(file: string, freeBytes = freeBytesOf): Promise<void> {
  const free = await freeBytes(dirname(file));
  if (free >= SPARE_BYTES) return;
  throw new DownloadError(`not enough disk space: the server reports no length, and ${byteSizeText(free)} are free`);
}

async function freeBytesOf(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}
