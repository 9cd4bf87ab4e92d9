/**
 * `verifyReceipt`: verifies a receipt saved from `GET /v1/receipts/{job_id}`. Used by the console and `inference-verify receipt`.
 *
 * The content commitments of an end-to-end receipt are not checked here, because the check needs the client's keys.
 */
import {
  type AttestationRecord,
  canonicalJson,
  type E2eReceipt,
  fromBase64,
  fromBase64Url,
  fromHex,
  fromUtf8,
  type JsonValue,
  openE2eReceipt,
  openReceipt,
  providerIdFromKeyHash,
  type Receipt,
  StatementError,
  toBase64,
  utf8,
} from '@inference/protocol';
import { allOk, type Check, check, type Verdict } from './checks.js';
import { sha256Hex } from './digest.js';
import { enclaveKeyBytes, verifyP256InBrowser } from './p256.js';
import { type AcceptedAnchors, openFeed, type RecordVerdict, verifyRecord } from './record/verify-record.js';

/** Body of `GET /v1/receipts/{job_id}`. Optional members are checked against the receipt if present. */
export interface SavedReceipt {
  /** base64url of the receipt's exact JSON. */
  readonly receipt: string;
  readonly receipt_signature: string;
  readonly response_hash?: unknown;
  readonly se_signature?: unknown;
  readonly claims?: unknown;
}

export type ReceiptClaims =
  | { readonly mode: 'plain'; readonly receipt: Receipt }
  | { readonly mode: 'end_to_end'; readonly receipt: E2eReceipt };

export interface ReceiptVerdict extends Verdict {
  /** Content of the receipt; null if its signature is invalid. */
  readonly claims: ReceiptClaims | null;
}

export interface ProviderReceiptVerdict extends ReceiptVerdict {
  /** Attestation record of the receipt's provider; null: the feed has none. */
  readonly published: AttestationRecord | null;
  readonly record: RecordVerdict | null;
}

/** A saved receipt is malformed. The message begins with the JSON pointer of the member. */
export class ReceiptError extends Error {}

/** Throws {@link ReceiptError} unless the value has a receipt and its signature. */
export function readSavedReceipt(value: unknown): SavedReceipt {
  const members = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>;
  const { receipt, receipt_signature } = members;
  if (typeof receipt !== 'string') throw new ReceiptError('/receipt is missing or is not a text.');
  if (typeof receipt_signature !== 'string') throw new ReceiptError('/receipt_signature is missing or is not a text.');
  return { ...members, receipt, receipt_signature };
}

/** Provider id in a receipt whose signature is not verified yet. Throws {@link ReceiptError}. */
export function providerNamedBy({ receipt }: SavedReceipt): string {
  let claims: unknown;
  try {
    claims = JSON.parse(fromUtf8(fromBase64Url(receipt)));
  } catch {
    throw new ReceiptError('/receipt is not base64url of JSON. Copy it whole.');
  }
  const { provider_id } = (claims ?? {}) as { readonly provider_id?: unknown };
  if (typeof provider_id !== 'string') throw new ReceiptError('/receipt names no provider_id.');
  return provider_id;
}

/** Verifies a receipt by the provider's enclave key, in base64 or as 65 bytes (x963). Never throws for invalid receipts or keys. */
export function verifyReceipt(saved: SavedReceipt, publicKey: Uint8Array | string): ReceiptVerdict {
  const key = enclaveKeyBytes(publicKey);
  if (key === null) {
    const malformed = check('public_key', false, '', 'The public key is not base64 of an uncompressed P-256 point.');
    return { verified: false, checks: [malformed], claims: null };
  }
  const claims = openEither(saved, key);
  if (claims === null) {
    const unsigned = check('receipt_signature', false, '', 'The enclave key did not sign this receipt, or the receipt is malformed.');
    return { verified: false, checks: [unsigned], claims: null };
  }
  const checks = [check('receipt_signature', true, 'The enclave key signed the receipt.', ''), ...checksOf(saved, claims, key)];
  return { verified: allOk(checks), checks, claims };
}

/**
 * Verifies a receipt by the published key of its provider, and the provider's record in the attestation feed.
 *
 * @param now Milliseconds since 1970.
 * @throws FeedError for an invalid feed, ReceiptError for a receipt without a provider id.
 */
export function verifyReceiptInFeed(
  saved: SavedReceipt,
  downloaded: unknown,
  now: number,
  accepted: AcceptedAnchors = 'published',
): ProviderReceiptVerdict {
  const { feed, anchor } = openFeed(downloaded, accepted);
  const named = providerNamedBy(saved);
  const published = feed.providers.find(({ provider_id }) => provider_id === named) ?? null;
  if (published === null) {
    const absent = check('provider_key', false, '', 'The provider is not in the feed.');
    return { verified: false, checks: [absent], claims: null, published, record: null };
  }
  const verdict = verifyReceipt(saved, published.se_public_key);
  const record = verifyRecord(published, now, anchor);
  const consistent = check(
    'provider_record',
    record.consistent,
    "No claim in the provider's record is contradicted.",
    "A claim in the provider's record is contradicted.",
  );
  const checks = [...verdict.checks, consistent];
  return { verified: allOk(checks), checks, claims: verdict.claims, published, record };
}

/** Opens a plain or an end-to-end receipt; null: the signature is valid for neither. */
function openEither({ receipt, receipt_signature: signature }: SavedReceipt, key: Uint8Array): ReceiptClaims | null {
  const openers = [
    (): ReceiptClaims => ({
      mode: 'plain',
      receipt: openReceipt({ payload: payloadOf(receipt), signature }, key, verifyP256InBrowser).value,
    }),
    (): ReceiptClaims => ({
      mode: 'end_to_end',
      receipt: openE2eReceipt({ payload: payloadOf(receipt), signature }, key, verifyP256InBrowser).value,
    }),
  ];
  for (const attempt of openers) {
    try {
      return attempt();
    } catch (error) {
      // The signed bytes name the kind of statement, so at most one of the two attempts succeeds.
      if (!(error instanceof StatementError)) throw error;
    }
  }
  return null;
}

/** Converts base64url to base64. Other text becomes `*`, which no statement accepts. */
function payloadOf(receipt: string): string {
  try {
    return toBase64(fromBase64Url(receipt));
  } catch {
    return '*';
  }
}

function checksOf(saved: SavedReceipt, { mode, receipt }: ReceiptClaims, key: Uint8Array): Check[] {
  const keySha256 = sha256Hex(key);
  const responseSha256 = mode === 'plain' ? receipt.response_sha256 : receipt.sealed_response_sha256;
  const { response_hash, se_signature, claims } = saved;
  const checks = [
    check(
      'receipt_key',
      receipt.se_key_sha256 === keySha256 && receipt.provider_id === providerIdFromKeyHash(fromHex(keySha256)),
      'The receipt names this enclave key and its provider.',
      'The receipt names another enclave key or another provider.',
    ),
  ];
  if (response_hash !== undefined) {
    const isSame = response_hash === responseSha256;
    checks.push(
      check('receipt_response', isSame, 'The receipt names the stated hash.', 'The receipt names another hash than the stated one.'),
    );
  }
  if (se_signature !== undefined) {
    const isSigned = isSignedBy(key, responseSha256, se_signature);
    checks.push(
      check(
        'response_signature',
        isSigned,
        'The enclave key signed the hash of the response.',
        'The enclave key did not sign the hash of the response.',
      ),
    );
  }
  if (claims !== undefined) {
    const isSame = sameJson(claims, receipt as unknown as JsonValue);
    checks.push(
      check(
        'receipt_claims',
        isSame,
        'The readable claims are those that were signed.',
        'The readable claims differ from those that were signed.',
      ),
    );
  }
  return checks;
}

function isSignedBy(key: Uint8Array, hash: string, signature: unknown): boolean {
  if (typeof signature !== 'string') return false;
  try {
    return verifyP256InBrowser(key, utf8(hash), fromBase64(signature));
  } catch {
    // The text is not base64.
    return false;
  }
}

function sameJson(value: unknown, other: JsonValue): boolean {
  try {
    return canonicalJson(value as JsonValue) === canonicalJson(other);
  } catch {
    // Canonical JSON cannot represent the value, so it differs from every receipt.
    return false;
  }
}
