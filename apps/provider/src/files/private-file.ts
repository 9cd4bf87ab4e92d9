/** `writePrivateFile` replaces a private file atomically: readers see the old text or the new text. */
import { chmodSync, renameSync, rmSync, writeFileSync } from 'node:fs';

/** The folder must exist. Throws the file system's error. */
export function writePrivateFile(path: string, text: string): void {
  const draft = `${path}.${process.pid}.new`;
  try {
    writeFileSync(draft, text, { mode: 0o600 });
    // The mode above applies only to a new file.
    chmodSync(draft, 0o600);
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    // Reports the target's path instead of the draft's.
    throw Object.assign(error as Error, { path });
  }
}
