/** `SignedReceipt`: response of `GET /v1/receipts/{job_id}`. Texts for its finish reasons. */
import type { E2eReceipt, Receipt } from '@inference/protocol';

export interface SignedReceipt {
  readonly object: 'inference.receipt';
  readonly job_id: string;
  /** base64url of the canonical JSON of the claims. */
  readonly receipt: string;
  /** Base64 of the enclave key's DER signature over the receipt. */
  readonly receipt_signature: string;
  readonly response_hash: string;
  /** Base64 of the enclave key's DER signature over `response_hash`. */
  readonly se_signature: string;
  readonly claims: Receipt | E2eReceipt;
}

export function isEndToEnd(claims: SignedReceipt['claims']): claims is E2eReceipt {
  return 'sealed_response_sha256' in claims;
}

export const FINISH_REASONS: Readonly<Record<SignedReceipt['claims']['finish_reason'], string>> = {
  stop: 'stop (the response is complete)',
  length: 'length (the token limit was reached)',
  tool_calls: 'tool_calls (the model called a tool)',
  cancelled: 'cancelled (the client disconnected)',
  refused: 'refused (the machine answered with an error)',
};
