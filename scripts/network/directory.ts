/** Making directories, ancestors included. */
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Creates a directory for its owner only, including missing ancestors. Throws the system's error. Node's recursive form never
 * returns on file systems that answer ENOENT to mkdir, as /proc does.
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
