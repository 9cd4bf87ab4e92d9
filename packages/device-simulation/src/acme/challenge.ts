/** Answers the `device-attest-01` challenge of ACME. The SHA-256 of the token is the freshness code of the attestation. */
import { createHash } from 'node:crypto';
import { toBase64Url, utf8 } from '@inference/protocol';
import { encode } from 'cborg';
import type { FakeMac } from '../management-server/fake-mac.js';

/** base64url of the CBOR attestation object for a challenge token: `{fmt: "apple", attStmt: {x5c: [leaf, issuer]}}`. */
export function attestationObject(mac: FakeMac, token: string): string {
  const x5c = mac.attest(new Uint8Array(createHash('sha256').update(utf8(token)).digest()));
  return toBase64Url(encode({ fmt: 'apple', attStmt: { x5c: [...x5c] } }));
}

const TIMEOUT_MS = 10_000;

/** Answers the challenge of an {@link AcmeServer}: requests a token, then posts the attestation object. */
export async function respondToChallenge(
  mac: FakeMac,
  order: { readonly directoryUrl: string; readonly clientIdentifier: string },
): Promise<void> {
  const { challenge_url, token } = (await post(`${order.directoryUrl}/new-order`, { identifier: order.clientIdentifier })) as {
    challenge_url: string;
    token: string;
  };
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
