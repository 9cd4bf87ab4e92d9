import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const created = new Set<string>();

/** An empty directory, removed at the end of the test file (`leaves-no-trace.ts`). */
export function temporaryDirectory(name: string, parent = tmpdir()): string {
  const directory = mkdtempSync(join(parent, `${name}-`));
  created.add(directory);
  return directory;
}

export function removeTemporaryDirectories(): void {
  for (const directory of created) rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  created.clear();
}
