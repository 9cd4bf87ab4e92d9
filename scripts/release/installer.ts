/** `installerWith`: the published installer, which is `scripts/install.sh` with the operator's public keys. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './manifest.js';

const UNSET = "RELEASE_KEYS=''";

/** `keys` are base64 of Ed25519 public keys. Throws when the script has no placeholder. */
export function installerWith(...keys: readonly string[]): string {
  const text = readFileSync(join(ROOT, 'scripts/install.sh'), 'utf8');
  if (!text.includes(`\n${UNSET}\n`)) throw new Error('scripts/install.sh has no place for the release key');
  return text.replace(UNSET, `RELEASE_KEYS='${keys.join(' ')}'`);
}
