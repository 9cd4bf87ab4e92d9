/** Answers the `device-attest-01` challenge of `acme-server.ts` for a simulated Mac. */
import { createHash } from 'node:crypto';
import { toBase64Url, utf8 } from '@inference/protocol';
import { encode } from 'cborg';
import type { FakeMac } from '../management-server/fake-mac.js';

/**
 * base64url of the CBOR attestation object `{fmt: "apple", attStmt: {x5c: [leaf, issuer]}}`.
 *
 * The leaf certifies the SHA-256 of the challenge token as its freshness code.
 */
export function attestationObject(mac: FakeMac, challengeToken: string): string {
  const x5c = mac.attest(new Uint8Array(createHash('sha256').update(utf8(challengeToken)).digest()));
  return toBase64Url(encode({ fmt: 'apple', attStmt: { x5c: [...x5c] } }));
}

const TIMEOUT_MS = 10_000;

/** Requests a challenge token, then posts the attestation object. */
export async function respondToChallenge(mac: FakeMac, directoryUrl: string): Promise<void> {
  const { challenge_url, token } = (await post(`${directoryUrl}/new-order`, {})) as { challenge_url: string; token: string };
  await post(challenge_url, { attObj: attestationObject(mac, token) });
}

async function post(url: string, body: object): Promise<unknown> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (!response.ok) throw new Error(`ACME: ${url} answered with status ${response.status}`);
  return response.json();
}
