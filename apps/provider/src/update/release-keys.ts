/** Which keys may sign releases for this build. They stand in its own package, so that a signed build says who signs the next one. */
import { createRequire } from 'node:module';
import Type from 'typebox';
import { Compile } from 'typebox/compile';

/** Member of package.json. */
export const RELEASE_KEYS_FIELD = 'releaseKeys';

const manifest = Compile(Type.Object({ [RELEASE_KEYS_FIELD]: Type.Array(Type.String({ pattern: '^[A-Za-z0-9+/]{43}=$' })) }));

/** Base64 of Ed25519 public keys; none where this was not built as a release. */
export function releaseKeys(): readonly string[] {
  const value: unknown = createRequire(import.meta.url)('#package.json');
  return manifest.Check(value) ? value[RELEASE_KEYS_FIELD] : [];
}
