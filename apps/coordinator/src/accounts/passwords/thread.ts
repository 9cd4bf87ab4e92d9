/** Entry file of a worker thread of `PasswordHasher`: derives one key at a time with scrypt. */
import { scryptSync } from 'node:crypto';
import { parentPort } from 'node:worker_threads';
import { type Derivation, type DerivedKey, KEY_BYTES, SCRYPT } from './thread-messages.js';

parentPort?.on('message', ({ password, salt, cost }: Derivation) => {
  try {
    const key = new Uint8Array(scryptSync(password, salt, KEY_BYTES, { N: cost, ...SCRYPT }));
    parentPort?.postMessage({ key } satisfies DerivedKey);
  } catch {
    parentPort?.postMessage({ key: null } satisfies DerivedKey);
  }
});
