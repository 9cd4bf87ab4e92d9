/** `lockDirectory`: allows one network per data directory, because two would share a database and enclave keys. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeDirectory } from './directory.js';
import { StartError } from './start-error.js';

/** Creates and locks a directory. Returns the unlock function. Throws {@link StartError} if another network is running there. */
export function lockDirectory(directory: string): () => void {
  const path = join(directory, 'start.pid');
  try {
    makeDirectory(directory);
    const holder = holderOf(path);
    if (holder !== null) throw new StartError(`a network with the data directory ${directory} is running already (process ${holder})`);
    rmSync(path, { force: true });
    writeFileSync(path, String(process.pid), { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if (error instanceof StartError) throw error;
    throw new StartError(`the data directory ${directory} cannot be used: ${(error as Error).message}`);
  }
  return () => rmSync(path, { force: true });
}

/** Id of the process that holds the lock. Null if the directory is free. */
function holderOf(path: string): number | null {
  let pid: number;
  try {
    pid = Number(readFileSync(path, 'utf8'));
  } catch {
    return null;
  }
  if (!Number.isInteger(pid) || pid <= 0 || pid === process.pid) return null;
  try {
    process.kill(pid, 0);
    return pid;
  } catch {
    return null;
  }
}
