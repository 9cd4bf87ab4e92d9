/** `writeDefinitionFile` writes the definition file of a service manager atomically, and only if its content changed. */
import { mkdirSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { writePrivateFile } from '../files/private-file.js';
import { ServiceError } from './service.js';

/** Returns whether the content changed. Throws {@link ServiceError} if the file cannot be read. */
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
