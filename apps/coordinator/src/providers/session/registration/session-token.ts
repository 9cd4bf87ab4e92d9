/** Bearer token of a session, with which the provider reads its own status over HTTP. The session keeps only the token's hash. */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { ProviderId } from '@inference/protocol';

const SECRET_BYTES = 32;
const FORM = /^([0-9a-f]{32})\.[A-Za-z0-9_-]{43}$/;

export type TokenHash = Uint8Array;

export function newSessionToken(providerId: ProviderId): { readonly token: string; readonly hash: TokenHash } {
  const token = `${providerId}.${randomBytes(SECRET_BYTES).toString('base64url')}`;
  return { token, hash: hashOfToken(token) };
}

/** The provider id in a token, not verified; null if the token is malformed. */
export function providerOfToken(token: string): ProviderId | null {
  return (FORM.exec(token)?.[1] ?? null) as ProviderId | null;
}

/** Whether two hashes belong to the same token. Constant-time comparison. */
export function isSameToken(presented: TokenHash, hash: TokenHash): boolean {
  return presented.length === hash.length && timingSafeEqual(presented, hash);
}

export function hashOfToken(token: string): TokenHash {
  return createHash('sha256').update(token).digest();
}
