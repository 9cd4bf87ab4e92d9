/**
 * The secret with which a provider asks about itself over HTTP. It is made for one session, told to that provider alone, kept as
 * a hash, and worth nothing when the session is over. It names the provider, so that one look finds the session.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { ProviderId } from '@inference/protocol';

const SECRET_BYTES = 32;
const FORM = /^([0-9a-f]{32})\.[A-Za-z0-9_-]{43}$/;

/** What is kept of a token. */
export type TokenHash = Uint8Array;

export function newSessionToken(providerId: ProviderId): { readonly token: string; readonly hash: TokenHash } {
  const token = `${providerId}.${randomBytes(SECRET_BYTES).toString('base64url')}`;
  return { token, hash: hashOf(token) };
}

/** The provider that a token claims to be of; null for a text that is none. */
export function providerOfToken(token: string): ProviderId | null {
  return (FORM.exec(token)?.[1] ?? null) as ProviderId | null;
}

/** Whether this is the token that the hash was made of. Takes the same time for every wrong one. */
export function isToken(token: string, hash: TokenHash): boolean {
  return timingSafeEqual(hashOf(token), hash);
}

function hashOf(token: string): TokenHash {
  return createHash('sha256').update(token).digest();
}
