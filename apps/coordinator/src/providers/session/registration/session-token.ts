/** Bearer token for a provider's own status over HTTP: per session, stored as a hash, and naming the provider. */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { ProviderId } from '@inference/protocol';

const SECRET_BYTES = 32;
const FORM = /^([0-9a-f]{32})\.[A-Za-z0-9_-]{43}$/;

/** The stored form of a token. */
export type TokenHash = Uint8Array;

export function newSessionToken(providerId: ProviderId): { readonly token: string; readonly hash: TokenHash } {
  const token = `${providerId}.${randomBytes(SECRET_BYTES).toString('base64url')}`;
  return { token, hash: hashOfToken(token) };
}

/** The provider that a token claims; null for a malformed token. */
export function providerOfToken(token: string): ProviderId | null {
  return (FORM.exec(token)?.[1] ?? null) as ProviderId | null;
}

/** Whether the hashes are of one token. Takes the same time for every wrong token. */
export function isSameToken(presented: TokenHash, hash: TokenHash): boolean {
  return presented.length === hash.length && timingSafeEqual(presented, hash);
}

export function hashOfToken(token: string): TokenHash {
  return createHash('sha256').update(token).digest();
}
