/** What a verification reports: every check it made, by name, with its outcome in plain words. */
import type { Receipt } from '@inference/protocol';

export type CheckName =
  /** A stream has one signature event, of this answer, and nothing but its end and comments after it. */
  | 'signature_event'
  /** The public key is a point of P-256 in the x963 form. */
  | 'public_key'
  /** The hash that the response states is the hash of its signed bytes. */
  | 'response_hash'
  /** The enclave key signed that hash. */
  | 'response_signature'
  /** The enclave key signed the receipt, and the receipt is well formed. */
  | 'receipt_signature'
  /** The receipt names this enclave key and the provider id that derives from it. */
  | 'receipt_key'
  /** The receipt names the hash of this response. */
  | 'receipt_response'
  /** The receipt names the request that was sent. */
  | 'receipt_request'
  | 'receipt_job'
  | 'receipt_nonce'
  | 'receipt_model'
  /** The receipt names the weights that the client expects. */
  | 'receipt_weights'
  /** The receipt names the endpoint that was called. */
  | 'receipt_endpoint'
  /** The receipt names exactly these images, in this order. */
  | 'receipt_images'
  /** The receipt is that of an answer that came to its end, and not of one that was cancelled. */
  | 'receipt_finish'
  /** The receipt counts the tokens that the answer reports to its client, and no more than its bytes can hold. Reported when it fails. */
  | 'receipt_usage'
  /** The enclave key signed the attestation statement, and the statement is well formed. */
  | 'attestation_signature'
  /** The statement names the key that signed it. */
  | 'attestation_key'
  /** The statement says that the key lives in a Secure Enclave and not in software. */
  | 'attestation_enclave'
  /** The statement says that the machine's protections are on. */
  | 'attestation_posture'
  /** What the public record says of the machine is what the statement says. */
  | 'attestation_record'
  /** The attestation feed names the key of this answer for its provider. */
  | 'provider_key'
  /** No claim in the provider's record is contradicted by its evidence. */
  | 'provider_record'
  /** The unsigned headers say no more of the provider than its record. */
  | 'provider_headers';

export interface Check {
  readonly name: CheckName;
  readonly result: 'ok' | 'failed';
  /** One sentence for people. */
  readonly explanation: string;
}

export interface Verdict {
  /** Every check that was made is ok. */
  readonly verified: boolean;
  readonly checks: readonly Check[];
}

export interface ResponseVerdict extends Verdict {
  /** The receipt once its signature verified, else null. */
  readonly receipt: Receipt | null;
}

/** A check that is `ok` when `passed`, with the sentence for either case. */
export function check(name: CheckName, passed: boolean, ok: string, failed: string): Check {
  return passed ? { name, result: 'ok', explanation: ok } : { name, result: 'failed', explanation: failed };
}

export function allOk(checks: readonly Check[]): boolean {
  return checks.length > 0 && checks.every((each) => each.result === 'ok');
}
