/**
 * Writes a Brotli and a gzip copy beside documents and text files with a hashed name, so that serving needs no compression.
 *
 * Other files with a fixed name get no copies. A server would serve a stale copy of an earlier build instead of the new file.
 */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { Plugin } from 'vite';

const TEXT = /[/\\]assets[/\\][^/\\]+\.(?:js|css|svg)$|[/\\]docs(?:[/\\].+)?\.html$/;
/** Smaller files gain nothing. */
const MIN_BYTES = 1024;

/** `brotliQuality`: 0 to 11. 11 takes 50 times the processor time of 5, for files a tenth smaller. */
export function compressed(brotliQuality: number): Plugin {
  return {
    name: 'compressed',
    apply: 'build',
    // Not `generateBundle`, during which other plugins still change the files.
    async writeBundle({ dir }) {
      if (dir === undefined) throw new Error('the build has no folder');
      const entries = await readdir(dir, { recursive: true, withFileTypes: true });
      const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
      await Promise.all(paths.filter((path) => TEXT.test(path)).map((path) => compress(path, brotliQuality)));
    },
  };
}

async function compress(path: string, brotliQuality: number): Promise<void> {
  const source = await readFile(path);
  if (source.length < MIN_BYTES) return;
  const params = { [constants.BROTLI_PARAM_QUALITY]: brotliQuality };
  await writeFile(`${path}.br`, await promisify(brotliCompress)(source, { params }));
  await writeFile(`${path}.gz`, await promisify(gzip)(source, { level: 9 }));
}
