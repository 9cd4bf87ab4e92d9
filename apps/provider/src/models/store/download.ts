/**
 * `download` downloads a large file (of a model, or an agent release) in parallel ranges, and resumes an earlier attempt.
 *
 * If the file on the server changed since, the download starts over. The file gets its final name only after its SHA-256 was compared
 * with the expected one, if any.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { type FileStamp, readStamp } from '../file-hash.js';
import { probe, readWhole, TransferError } from './http-ranges.js';
import { discardPartialFile, downloadRanges } from './ranged-download.js';
import { type Download, DownloadError, requireSpace, requireSpareSpace, type Tuning, withRetries, writeAll } from './transfer.js';

const TUNING: Tuning = { chunkBytes: 32 << 20, connections: 6, tries: 8, retryMs: 250, stallMs: 30_000 };

interface Downloaded {
  readonly bytes: number;
  readonly sha256: string;
  /** Read before the file was hashed. */
  readonly stamp: FileStamp;
}

/**
 * Resolves when the file is complete. After a failure, ranges that were stored remain for the next attempt.
 *
 * @throws {DownloadError} Or the signal's reason.
 */
export async function download(options: Download): Promise<Downloaded> {
  const tuning = { ...TUNING, ...options.tuning };
  for (let restarts = 0; ; restarts++) {
    try {
      return await attempt(options, tuning);
    } catch (error) {
      options.signal.throwIfAborted();
      if (error instanceof TransferError) {
        if (error.kind !== 'changed' || restarts > 0) throw new DownloadError(error.message);
        await discardPartialFile(options.file);
      } else throw error;
    }
  }
}

async function attempt(options: Download, tuning: Tuning): Promise<Downloaded> {
  const { signal } = options;
  const { bytes, supportsRanges, validator } = await withRetries(() => probe(options, signal, tuning.stallMs), tuning, signal);
  if (options.bytes !== null && bytes !== null && bytes !== options.bytes) {
    throw new DownloadError(`the server offers ${bytes} bytes, and the file should have ${options.bytes}`);
  }
  if (supportsRanges && bytes !== null) await downloadRanges(options, tuning, { bytes, validator });
  else await downloadWhole(options, tuning, bytes);
  return await verifyAndRename(options);
}

/**
 * Downloads in one piece, for servers without ranges. A retry begins from the start.
 *
 * @param bytes Length that the server reports, or null.
 */
async function downloadWhole(options: Download, tuning: Tuning, bytes: number | null): Promise<void> {
  const { file, signal, onProgress, freeBytes } = options;
  await requireSpace(file, bytes ?? 0, freeBytes);
  const limit = options.bytes ?? bytes;
  const writeWhole = async (): Promise<void> => {
    const handle = await open(`${file}.part`, 'w');
    try {
      let written = 0;
      let checked = 0;
      onProgress?.({ phase: 'downloading', bytes: written, total: bytes });
      for await (const bytesRead of readWhole(options, signal, tuning.stallMs)) {
        await writeAll(handle, bytesRead, written);
        written += bytesRead.length;
        if (limit !== null && written > limit) throw new DownloadError('the server sends more than the file should have');
        // A server that states no length might send forever.
        if (limit === null && written - checked >= tuning.chunkBytes) {
          await requireSpareSpace(file, freeBytes);
          checked = written;
        }
        onProgress?.({ phase: 'downloading', bytes: written, total: bytes });
      }
      if (bytes !== null && written !== bytes) throw new TransferError('transient', `the server sent ${written} of ${bytes} bytes`);
      await handle.sync();
    } finally {
      await handle.close();
    }
  };
  try {
    await withRetries(writeWhole, tuning, signal);
  } catch (error) {
    // The data cannot be resumed, and the disk may be full.
    if (error instanceof DownloadError) await discardPartialFile(file);
    throw error;
  }
}

/** Hashes the partial file, compares the hash if one is expected, and gives the file its final name. */
async function verifyAndRename({ file, sha256: expected, onProgress, signal }: Download): Promise<Downloaded> {
  const part = `${file}.part`;
  const hash = createHash('sha256');
  // The rename below changes neither size nor time nor inode.
  const stamp = await readStamp(part);
  let bytes = 0;
  for await (const chunk of createReadStream(part, { highWaterMark: 1 << 20, signal })) {
    hash.update(chunk as Buffer);
    bytes += (chunk as Buffer).length;
    onProgress?.({ phase: 'verifying', bytes, total: stamp.size });
  }
  const sha256 = hash.digest('hex');
  if (expected !== null && sha256 !== expected) {
    await discardPartialFile(file);
    throw new DownloadError(`the downloaded file is not the requested one: its SHA-256 is ${sha256}, and it should be ${expected}`);
  }
  await rename(part, file);
  await discardPartialFile(file);
  return { bytes, sha256, stamp };
}
