/** Result of a verification: named checks, each with its outcome and an explanation for people. */
import type { Receipt } from '@inference/protocol';

export type CheckName =
  /** A stream has one signature (event or comment), for this answer, followed only by the end and comments. */
  | 'signature_event'
  /** The public key is a point of P-256 in the x963 form. */
  | 'public_key'
  /** A plain answer is a JSON object without an error. Reported only on failure. */
  | 'response_body'
  /** The hash that the response states is the hash of the signed bytes. */
  | 'response_hash'
  /** The enclave key signed the response hash. */
  | 'response_signature'
  /** The enclave key signed the receipt, and the receipt is well formed. */
  | 'receipt_signature'
  /** The receipt names this enclave key and the provider id derived from the key. */
  | 'receipt_key'
  /** The receipt names the hash of this response; of a saved receipt, the hash stated beside it. */
  | 'receipt_response'
  /** The receipt names the request that was sent. */
  | 'receipt_request'
  /** The receipt names the expected job id. */
  | 'receipt_job'
  /** The receipt repeats the nonce that was sent. */
  | 'receipt_nonce'
  /** The receipt names the requested model or a fallback model of the request. */
  | 'receipt_model'
  /** The receipt names the weights that the client expects. */
  | 'receipt_weights'
  /** The receipt names the endpoint that was called. */
  | 'receipt_endpoint'
  /** The member `claims` of a saved receipt equals the signed claims. */
  | 'receipt_claims'
  /** The receipt names exactly the images of the response, in order. */
  | 'receipt_images'
  /** The receipt belongs to a completed answer, not to a cancelled answer. */
  | 'receipt_finish'
  /** The receipt's token counts match the counts in the answer, and are possible for its bytes. Reported only on failure. */
  | 'receipt_usage'
  /** The enclave key signed the attestation statement, and the statement is well formed. */
  | 'attestation_signature'
  /** The statement names the key that signed the statement. */
  | 'attestation_key'
  /** According to the statement, the key lives in a Secure Enclave and not in software. */
  | 'attestation_enclave'
  /** According to the statement, the machine's protections are on. */
  | 'attestation_posture'
  /** The public record agrees with the statement. */
  | 'attestation_record'
  /** The attestation feed names the key of this answer for its provider. */
  | 'provider_key'
  /** No claim in the provider's record is contradicted by its evidence. */
  | 'provider_record'
  /** The unsigned headers claim no more than the provider's record. */
  | 'provider_headers';

export interface Check {
  readonly name: CheckName;
  readonly result: 'ok' | 'failed';
  /** One sentence for people. */
  readonly explanation: string;
}

export interface Verdict {
  /** At least one check was made, and all are ok. */
  readonly verified: boolean;
  readonly checks: readonly Check[];
}

export interface ResponseVerdict extends Verdict {
  /** The receipt; null unless its signature verified. */
  readonly receipt: Receipt | null;
}

/** `ok` and `failed` are the explanations of the two outcomes. */
export function check(name: CheckName, passed: boolean, ok: string, failed: string): Check {
  return passed ? { name, result: 'ok', explanation: ok } : { name, result: 'failed', explanation: failed };
}

export function allOk(checks: readonly Check[]): boolean {
  return checks.length > 0 && checks.every((each) => each.result === 'ok');
}
