import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';

/** Creates a directory and missing ancestors, mode 0700. Avoids Node's recursive `mkdir`, which never returns under /proc. */
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
