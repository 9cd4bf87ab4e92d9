/** The file that tells a service manager of the agent: written whole or not at all, and only when it says something else than before. */
import { mkdirSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { writePrivateFile } from '../files/private-file.js';
import { ServiceError } from './service.js';

/** Whether it was another before, or none. Throws {@link ServiceError} for one that cannot be read. */
export function writeDefinitionFile(path: string, text: string): boolean {
  try {
    if (readFileSync(path, 'utf8') === text) return false;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ENOENT') throw new ServiceError(`${path} cannot be read (${code})`);
  }
  mkdirSync(dirname(path), { recursive: true });
  writePrivateFile(path, text);
  return true;
}
