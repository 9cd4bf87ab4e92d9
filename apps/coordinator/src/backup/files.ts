/** Lists, verifies and copies the files of a backup by the sizes and SHA-256 hashes in its manifest. */
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { errorReason, StartupError } from '../config/startup-error.js';
import { syncPath } from './backup-folder.js';
import type { BackupFile } from './manifest.js';

/** Lists all files below a folder, sorted by path, with size and hash. Flushes each file to disk (fsync). */
export async function describeFiles(folder: string, signal: AbortSignal): Promise<BackupFile[]> {
  const files: BackupFile[] = [];
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name).slice(folder.length + 1);
    files.push({ path, ...(await hashFile(join(folder, path), signal)) });
    await syncPath(join(folder, path));
  }
  return files.sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** Verifies the files of a backup. Throws {@link StartupError} that names the first missing or changed file. */
export async function verifyFiles(folder: string, files: readonly BackupFile[], signal: AbortSignal): Promise<void> {
  for (const file of files) {
    const facts = await stat(join(folder, file.path)).catch((error: unknown) => errorReason(error));
    if (typeof facts === 'string') throw new StartupError(`The backup is incomplete: ${file.path} cannot be read (${facts}).`);
    if (facts.size !== file.bytes) throw damaged(file);
    requireSame(file, await hashFile(join(folder, file.path), signal));
  }
}

/** Copies a file of a backup. Throws {@link StartupError} if the copied bytes differ from the manifest. */
export async function copyVerified(folder: string, file: BackupFile, target: string, signal: AbortSignal): Promise<void> {
  const hash = createHash('sha256');
  let bytes = 0;
  const tap = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      bytes += chunk.length;
      done(null, chunk);
    },
  });
  await mkdir(dirname(target), { recursive: true, mode: 0o700 });
  const writing = createWriteStream(target, { mode: 0o600, flags: 'wx' });
  await pipeline(createReadStream(join(folder, file.path)), tap, writing, { signal });
  requireSame(file, { bytes, sha256: hash.digest('hex') });
  await syncPath(target);
}

async function hashFile(path: string, signal: AbortSignal): Promise<Pick<BackupFile, 'bytes' | 'sha256'>> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of createReadStream(path, { highWaterMark: 2 ** 20, signal })) {
    hash.update(chunk as Buffer);
    bytes += (chunk as Buffer).length;
  }
  return { bytes, sha256: hash.digest('hex') };
}

function requireSame(file: BackupFile, found: Pick<BackupFile, 'bytes' | 'sha256'>): void {
  if (found.bytes !== file.bytes || found.sha256 !== file.sha256) throw damaged(file);
}

function damaged({ path }: BackupFile): StartupError {
  return new StartupError(`The backup is damaged: ${path} is not the file that manifest.json describes.`);
}
