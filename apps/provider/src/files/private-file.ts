/** Files that are their owner's alone, written whole or not at all: whoever reads one meanwhile gets the text before or the text after. */
import { chmodSync, renameSync, rmSync, writeFileSync } from 'node:fs';

/** Its folder must be there. Throws what the file system says. */
export function writePrivateFile(path: string, text: string): void {
  const draft = `${path}.${process.pid}.new`;
  try {
    writeFileSync(draft, text, { mode: 0o600 });
    // The mode above counts only where the draft was not there.
    chmodSync(draft, 0o600);
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    // Of the draft nobody needs to know.
    throw Object.assign(error as Error, { path });
  }
}
