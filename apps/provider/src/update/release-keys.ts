/** `releaseKeys`: public keys in this build's package.json, which may sign later releases. */
import { createRequire } from 'node:module';
import { lazyValidator } from '@inference/protocol';
import Type from 'typebox';

/** Member of package.json. */
export const RELEASE_KEYS_FIELD = 'releaseKeys';

const manifest = lazyValidator(Type.Object({ [RELEASE_KEYS_FIELD]: Type.Array(Type.String({ pattern: '^[A-Za-z0-9+/]{43}=$' })) }));

/** Base64 Ed25519 public keys; empty unless built as a release. */
export function releaseKeys(): readonly string[] {
  const value: unknown = createRequire(import.meta.url)('#package.json');
  return manifest().Check(value) ? value[RELEASE_KEYS_FIELD] : [];
}
