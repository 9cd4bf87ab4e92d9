/** Creates private directories. */
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';

/** Creates a directory (mode 0700) and its ancestors, without Node's recursive `mkdir`, which never returns under /proc. */
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
