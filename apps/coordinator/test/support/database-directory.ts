/** Parent directory of test databases: in memory where possible, because each commit waits for a sync to the disk. */
import { accessSync, constants, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';

/** Linux's file system in memory. Containers may limit it to 64 MiB. */
const SHARED_MEMORY = '/dev/shm';
const MIN_FREE_BYTES = 2 ** 30;

export const DATABASE_PARENT = hasSharedMemory() ? SHARED_MEMORY : tmpdir();

function hasSharedMemory(): boolean {
  try {
    accessSync(SHARED_MEMORY, constants.W_OK | constants.X_OK);
    const { bavail, bsize } = statfsSync(SHARED_MEMORY);
    return bavail * bsize >= MIN_FREE_BYTES;
  } catch {
    return false;
  }
}
