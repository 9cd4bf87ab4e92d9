/** `unpack` unpacks a release archive, after checking that all entries are plain files and folders below `package/`. */
import { mkdirSync } from 'node:fs';
import { extract, list, type ReadEntry } from 'tar';
import { UpdateError } from './releases.js';

const MAX_FILES = 100_000;
const MAX_BYTES = 8 * 2 ** 30;
const TOP = 'package/';

/** Throws {@link UpdateError} for an invalid entry, before anything is written. */
export async function unpack(archive: string, folder: string): Promise<void> {
  await inspect(archive);
  mkdirSync(folder, { recursive: true });
  try {
    await extract({ file: archive, cwd: folder, strip: 1, strict: true, noMtime: true, filter: (path) => path.startsWith(TOP) });
  } catch (error) {
    const full = (error as NodeJS.ErrnoException).code === 'ENOSPC';
    throw new UpdateError(full ? 'the disk is full; free some space and try again' : 'the archive of the release cannot be unpacked');
  }
}

async function inspect(archive: string): Promise<void> {
  let files = 0;
  let bytes = 0;
  let bad: string | null = null;
  const inspectEntry = (entry: ReadEntry): void => {
    files++;
    bytes += entry.size;
    bad ??= problemOf(entry);
    entry.resume();
  };
  try {
    await list({ file: archive, strict: true, onReadEntry: inspectEntry });
  } catch {
    throw new UpdateError('the archive of the release cannot be read');
  }
  if (files > MAX_FILES || bytes > MAX_BYTES) bad ??= 'too large';
  if (files === 0) bad ??= 'empty';
  if (bad !== null) throw new UpdateError(`the archive of the release is invalid: ${bad}`);
}

function problemOf({ path, type }: ReadEntry): string | null {
  if (type !== 'File' && type !== 'OldFile' && type !== 'ContiguousFile' && type !== 'Directory') return `contains a ${type}`;
  const inside = path.startsWith(TOP) && !path.split('/').includes('..') && !path.includes('\\') && !path.includes('\0');
  return inside ? null : 'contains a path outside its folder';
}
