/** Searches files for a text while running programs replace and remove files. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Paths of files under a directory that contain the text or bytes. Skips files that are removed during the search. */
export function filesHolding(directory: string, text: string | Buffer): string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .map((name) => join(directory, name))
    .filter((path) => contentOf(path)?.includes(text) === true);
}

/** Null for anything but a file, and for a removed file. */
function contentOf(path: string): Buffer | null {
  try {
    return statSync(path).isFile() ? readFileSync(path) : null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
