import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const created = new Set<string>();

/** Creates an empty directory, which `leaves-no-trace.ts` removes at the end of the test file. */
export function temporaryDirectory(name: string, parent = tmpdir()): string {
  const directory = mkdtempSync(join(parent, `${name}-`));
  created.add(directory);
  return directory;
}

export function removeTemporaryDirectories(): void {
  for (const directory of created) rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  created.clear();
}
