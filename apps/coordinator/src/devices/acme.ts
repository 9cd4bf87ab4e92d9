/**
 * `openAcmeResult` checks a report of the ACME server about a Mac's answer to a `device-attest-01` challenge. `verifyAcmeAnswer` verifies
 * the certificates in the answer.
 */
import { type ChainRejection, fromBase64Url, toBase64 } from '@inference/protocol';
import { decode } from 'cborg';
import Type from 'typebox';
import { acmeFreshness } from '../providers/verification/chain/freshness.js';
import type { TrustAnchor } from '../providers/verification/chain/trust-anchor.js';
import { type ChainFacts, verifyDeviceChain } from '../providers/verification/chain/verify-chain.js';
import { jsonReader } from './json-reader.js';
import { isSignedBy, MAX_EVENT_AGE_MS, type WebhookRefusal } from './webhook.js';

/** Maximum base64url characters of an attestation object. Real ones have about 2500. */
const MAX_OBJECT_TEXT = 32_768;
/** A challenge token has at least 128 bits of entropy (RFC 8555 section 8.1), which is 22 base64url characters. */
const TOKEN = /^[A-Za-z0-9_-]{22,256}$/;

export type AcmeRejection = 'acme_token_invalid' | 'acme_object_malformed' | 'acme_format_unknown' | ChainRejection;
type AcmeVerdict = { readonly ok: true; readonly facts: ChainFacts } | { readonly ok: false; readonly code: AcmeRejection };

interface AcmeAnswer {
  /** Challenge token issued by the ACME server. */
  readonly token: string;
  /** Member `attObj` of the device's answer. */
  readonly attestationObject: string;
  /** `ClientIdentifier` in the enrolment profile, which is the serial number. */
  readonly serialNumber: string;
}

/** Verifies an answer. `now` in milliseconds. Never throws, whatever the peer sent. */
export function verifyAcmeAnswer(answer: AcmeAnswer, anchor: TrustAnchor, now: number): AcmeVerdict {
  const freshness = TOKEN.test(answer.token) ? acmeFreshness(answer.token) : null;
  if (freshness === null) return { ok: false, code: 'acme_token_invalid' };
  const object = decodeObject(answer.attestationObject);
  if (object === null) return { ok: false, code: 'acme_object_malformed' };
  if (object.format !== 'apple') return { ok: false, code: 'acme_format_unknown' };
  if (object.chain === null) return { ok: false, code: 'acme_object_malformed' };
  const claims = { serialNumber: answer.serialNumber, provisioningUdid: null, softwareUpdateDeviceId: null, chipName: null };
  return verifyDeviceChain(object.chain, { claims, freshness }, anchor, now);
}

/** Returns the unverified certificates of an attestation object: base64 of DER, leaf first. Null if they cannot be read. */
export function certificatesIn(attestationObject: string): readonly string[] | null {
  const object = decodeObject(attestationObject);
  return object?.format === 'apple' ? object.chain : null;
}

/** Format and certificates of an attestation object. `chain` is null if it is not a list of byte strings. Null if malformed. */
function decodeObject(text: string): { readonly format: string; readonly chain: readonly string[] | null } | null {
  if (text.length > MAX_OBJECT_TEXT) return null;
  let root: unknown;
  try {
    // Strict: deterministic encoding, no tags, no duplicate keys, no trailing bytes (RFC 8949 section 4.2.1).
    root = decode(fromBase64Url(text), {
      strict: true,
      useMaps: true,
      rejectDuplicateMapKeys: true,
      allowIndefinite: false,
      allowUndefined: false,
      allowInfinity: false,
      allowNaN: false,
      allowBigInt: false,
    });
  } catch {
    return null;
  }
  if (!(root instanceof Map)) return null;
  const format: unknown = root.get('fmt');
  if (typeof format !== 'string') return null;
  const statement: unknown = root.get('attStmt');
  const certificates: unknown = statement instanceof Map ? statement.get('x5c') : null;
  if (!Array.isArray(certificates) || !certificates.every((certificate): certificate is Uint8Array => certificate instanceof Uint8Array)) {
    return { format, chain: null };
  }
  return { format, chain: certificates.map(toBase64) };
}

export const AcmeResultSchema = Type.Object({
  /** Token of the enrolment, from the URL of the ACME directory in the profile. */
  enrolment: Type.String({ minLength: 1, maxLength: 256 }),
  /** Challenge token (RFC 8555 section 8.1). */
  token: Type.String({ maxLength: 256 }),
  /** Member `attObj` of the device's answer. */
  att_obj: Type.String({ maxLength: 65_536 }),
  created_at: Type.String({ maxLength: 64 }),
});
const readResult = jsonReader(AcmeResultSchema);

type OpenedAcmeResult =
  | { readonly ok: true; readonly result: { readonly enrolmentToken: string; readonly token: string; readonly attestationObject: string } }
  | { readonly ok: false; readonly code: WebhookRefusal };

/** Checks the signature, structure and age of a report. Never throws. */
export function openAcmeResult(input: {
  readonly body: Uint8Array;
  readonly signature: string | undefined;
  readonly secret: string;
  readonly now: number;
}): OpenedAcmeResult {
  if (input.signature === undefined || input.signature === '') return { ok: false, code: 'webhook_unsigned' };
  if (!isSignedBy(input.secret, input.body, input.signature)) return { ok: false, code: 'webhook_bad_signature' };
  const result = readResult(input.body);
  const createdAt = result === null ? Number.NaN : Date.parse(result.created_at);
  if (result === null || Number.isNaN(createdAt)) return { ok: false, code: 'webhook_malformed' };
  if (Math.abs(input.now - createdAt) > MAX_EVENT_AGE_MS) return { ok: false, code: 'webhook_stale' };
  return { ok: true, result: { enrolmentToken: result.enrolment, token: result.token, attestationObject: result.att_obj } };
}
