/** Making directories, ancestors included. */
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Makes a directory for its owner only, with the ancestors that are missing. Throws the system's error.
 * Node's own recursive form never returns on file systems that answer ENOENT where nothing can be made, as /proc does.
 */
export function makeDirectory(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return;
    const parent = dirname(path);
    if (code !== 'ENOENT' || parent === path) throw error;
    makeDirectory(parent);
    mkdirSync(path, { mode: 0o700 });
  }
}
