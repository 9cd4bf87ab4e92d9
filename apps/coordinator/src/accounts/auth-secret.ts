/**
 * The secret that signs session cookies: from the environment, or made at the first start and kept in a file that only its
 * owner can read. Coordinators that share a database must share it through the environment.
 */
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { errorReason, StartupError } from '../config/startup-error.js';

const PATTERN = /^[A-Za-z0-9_-]{43}$/;

/** Reads the secret from the file, or makes it. Throws {@link StartupError}. */
export function ensureAuthSecret(file: string): string {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    // The exclusive flag: of two processes that start at once, one makes it and both read it.
    writeFileSync(file, randomBytes(32).toString('base64url'), { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if (errorReason(error) !== 'EEXIST') {
      throw new StartupError(`The session secret ${file} cannot be written: ${errorReason(error)}.`, { cause: error });
    }
  }
  return readSecret(file);
}

function readSecret(file: string): string {
  let text: string;
  try {
    chmodSync(file, 0o600);
    text = readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new StartupError(`The session secret ${file} cannot be read: ${errorReason(error)}.`, { cause: error });
  }
  if (!PATTERN.test(text)) throw new StartupError(`The session secret ${file} is damaged; remove the file to have a new one made.`);
  return text;
}
