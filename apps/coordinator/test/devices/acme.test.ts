import { createHash } from 'node:crypto';
import { attestationObject, FakeMac } from '@inference/device-simulation';
import { fromBase64Url, toBase64Url } from '@inference/protocol';
import { decode, encode } from 'cborg';
import { describe, expect, it } from 'vitest';
import { certificatesIn, verifyAcmeAnswer } from '../../src/devices/acme.js';
import { APPLE_TRUST_ANCHOR, parseSimulatedAnchor } from '../../src/providers/verification/chain/trust-anchor.js';
import { testAuthority } from './managed-network.js';

const NOW = Date.now();
const TOKEN = 'a'.repeat(43);
const authority = testAuthority(NOW);
const anchor = parseSimulatedAnchor(authority.rootPem);
const identity = {
  serialNumber: 'SIM0000001',
  udid: 'A-1',
  provisioningUdid: '00006041-0123456789ABCDEF',
  softwareUpdateDeviceId: 'J575cAP',
  hardwareModel: 'Mac16,9',
  osVersion: '26.1',
};
const mac = new FakeMac({ identity, authority, now: () => NOW });
const object = attestationObject(mac, TOKEN);

function codeOf(change: { token?: string; object?: string; serial?: string; now?: number } = {}): string {
  const answer = {
    token: change.token ?? TOKEN,
    attestationObject: change.object ?? object,
    serialNumber: change.serial ?? identity.serialNumber,
  };
  const verdict = verifyAcmeAnswer(answer, anchor, change.now ?? NOW);
  return verdict.ok ? 'verified' : verdict.code;
}

const [leaf = new Uint8Array(), issuer = new Uint8Array()] = (decode(fromBase64Url(object)) as { attStmt: { x5c: Uint8Array[] } }).attStmt
  .x5c;
const cbor = (value: unknown): string => toBase64Url(encode(value));
const bytes = (...parts: readonly (number | string)[]): string =>
  toBase64Url(Buffer.concat(parts.map((part) => (typeof part === 'number' ? Buffer.from([part]) : Buffer.from(part)))));

describe('an ACME challenge answer', () => {
  it('is verified up to the anchor, fresh by the SHA-256 of the token', () => {
    const verdict = verifyAcmeAnswer({ token: TOKEN, attestationObject: object, serialNumber: identity.serialNumber }, anchor, NOW);
    expect(verdict).toMatchObject({ ok: true, facts: { serialNumber: identity.serialNumber, sipEnabled: true } });
    expect(verdict.ok && Buffer.from(verdict.facts.freshness)).toEqual(createHash('sha256').update(TOKEN).digest());
    expect(certificatesIn(object)).toEqual([leaf, issuer].map((der) => Buffer.from(der).toString('base64')));
  });

  it.each<readonly [string, Parameters<typeof codeOf>[0], string]>([
    ['another token', { token: 'b'.repeat(43) }, 'freshness_mismatch'],
    ['an empty token', { token: '' }, 'acme_token_invalid'],
    ['an empty token with a certificate that is fresh by nothing', { token: '', object: attestationObject(mac, '') }, 'acme_token_invalid'],
    ['a token that can be guessed', { token: 'short' }, 'acme_token_invalid'],
    ['a token of other characters', { token: `${'a'.repeat(42)}ü` }, 'acme_token_invalid'],
    ['the serial number of another device', { serial: 'SIM0000002' }, 'serial_mismatch'],
    ['a certificate that has expired', { now: NOW + 92 * 86_400_000 }, 'leaf_expired'],
    ['no object', { object: '' }, 'acme_object_malformed'],
    ['padding', { object: `${object}==` }, 'acme_object_malformed'],
    [
      'something behind the object',
      { object: toBase64Url(Buffer.concat([fromBase64Url(object), Buffer.from([0])])) },
      'acme_object_malformed',
    ],
    ['an object cut short', { object: object.slice(0, -8) }, 'acme_object_malformed'],
    ['a list', { object: cbor(['apple']) }, 'acme_object_malformed'],
    ['another format', { object: cbor({ fmt: 'tpm', attStmt: { x5c: [leaf, issuer] } }) }, 'acme_format_unknown'],
    ['a format that is no text', { object: cbor({ fmt: 1, attStmt: { x5c: [leaf, issuer] } }) }, 'acme_object_malformed'],
    ['no statement', { object: cbor({ fmt: 'apple' }) }, 'acme_object_malformed'],
    ['certificates that are texts', { object: cbor({ fmt: 'apple', attStmt: { x5c: ['a', 'b'] } }) }, 'acme_object_malformed'],
    ['a member twice', { object: bytes(0xa2, 0x63, 'fmt', 0x65, 'apple', 0x63, 'fmt', 0x65, 'apple') }, 'acme_object_malformed'],
    ['a length longer than it need be', { object: bytes(0xa1, 0x78, 0x03, 'fmt', 0x65, 'apple') }, 'acme_object_malformed'],
    ['an indefinite length', { object: bytes(0xbf, 0x63, 'fmt', 0x65, 'apple', 0xff) }, 'acme_object_malformed'],
    ['a tag', { object: bytes(0xc1, 0xa1, 0x63, 'fmt', 0x65, 'apple') }, 'acme_object_malformed'],
    ['ten thousand levels', { object: toBase64Url(Buffer.alloc(10_000, 0x81)) }, 'acme_object_malformed'],
    ['a hundred thousand digits', { object: 'A'.repeat(100_000) }, 'acme_object_malformed'],
    ['no certificate', { object: cbor({ fmt: 'apple', attStmt: { x5c: [] } }) }, 'chain_count'],
    ['a leaf alone', { object: cbor({ fmt: 'apple', attStmt: { x5c: [leaf] } }) }, 'chain_count'],
    ['certificates the wrong way round', { object: cbor({ fmt: 'apple', attStmt: { x5c: [issuer, leaf] } }) }, 'leaf_is_ca'],
  ])('is refused with %s', (_what, change, code) => {
    expect(codeOf(change)).toBe(code);
  });

  it("of a simulation does not end at Apple's anchor", () => {
    const answer = { token: TOKEN, attestationObject: object, serialNumber: identity.serialNumber };
    expect(verifyAcmeAnswer(answer, APPLE_TRUST_ANCHOR, NOW)).toEqual({ ok: false, code: 'anchor_name' });
  });
});
