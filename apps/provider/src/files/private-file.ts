/** `writePrivateFile` replaces a file that only its owner can read. Readers see the old text or the new text, never a part. */
import { chmodSync, renameSync, rmSync, writeFileSync } from 'node:fs';

/** The folder must exist. Throws the file system's error. */
export function writePrivateFile(path: string, text: string): void {
  const draft = `${path}.${process.pid}.new`;
  try {
    writeFileSync(draft, text, { mode: 0o600 });
    // The mode above does not apply to a draft left by a killed process.
    chmodSync(draft, 0o600);
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    // Reports the target's path instead of the draft's.
    throw Object.assign(error as Error, { path });
  }
}
