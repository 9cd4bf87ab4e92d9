/** Checks of the receipt: signature, key, and agreement with the response and the request. */
import {
  fromBase64Url,
  fromHex,
  openReceipt,
  providerIdFromKeyHash,
  type Receipt,
  StatementError,
  type StatementProblem,
  toBase64,
} from '@inference/protocol';
import { type Check, type CheckName, check } from './checks.js';
import { sha256Hex } from './digest.js';
import { verifyP256InBrowser } from './p256.js';
import type { ResponseProof } from './response-proof.js';
import { type RequestSize, type SignedAnswer, usageCheck } from './usage-check.js';

/** Facts of the request that the client knows. Absent members are not checked. */
export interface Expected extends RequestSize {
  /** Hexadecimal SHA-256 of the request body as sent. Without the hash, a receipt of another request would pass. */
  readonly requestSha256?: string;
  /** `X-Inference-Job-ID`. */
  readonly jobId?: string;
  /** The `X-Inference-Nonce` as sent. */
  readonly nonce?: string;
  readonly model?: string;
  /** Models of the request's `models`, any of which may answer instead. */
  readonly fallbackModels?: readonly string[];
  /** SHA-256 of the weights that the receipt must name. */
  readonly weightsSha256?: string;
  /** Path of the called endpoint. */
  readonly endpoint?: string;
  /** Bytes of the images in the order of the answer, included in the answer or fetched from its URLs. */
  readonly images?: readonly Uint8Array[];
}

const PROBLEMS: Record<StatementProblem, string> = {
  bad_encoding: 'The receipt or its signature is missing or is not canonical base64.',
  bad_signature: 'The enclave key did not sign this receipt.',
  not_canonical: 'The receipt is signed but is not canonical JSON.',
  bad_schema: 'The receipt is signed but lacks members or has wrong ones.',
  unknown_critical: 'The receipt is signed but says something that this program does not know and must not ignore.',
};

/** Checks a receipt against the key, the signed response bytes and the client's expectations. */
export function receiptChecks(
  proof: ResponseProof,
  publicKey: Uint8Array,
  answer: SignedAnswer & { readonly sha256: string },
  expected: Expected,
): { readonly checks: readonly Check[]; readonly receipt: Receipt | null } {
  let receipt: Receipt;
  try {
    receipt = openReceipt({ payload: payloadOf(proof.receipt), signature: proof.receiptSignature }, publicKey, verifyP256InBrowser).value;
  } catch (error) {
    if (!(error instanceof StatementError)) throw error;
    return { checks: [check('receipt_signature', false, '', PROBLEMS[error.problem])], receipt: null };
  }
  const keySha256 = sha256Hex(publicKey);
  const checks = [
    check('receipt_signature', true, 'The enclave key signed the receipt.', ''),
    check(
      'receipt_key',
      receipt.se_key_sha256 === keySha256 && receipt.provider_id === providerIdFromKeyHash(fromHex(keySha256)),
      'The receipt names this enclave key and its provider.',
      'The receipt names another enclave key or another provider.',
    ),
    check(
      'receipt_response',
      receipt.response_sha256 === answer.sha256,
      'The receipt names this response.',
      'The receipt was made for another response.',
    ),
    // A signed answer claims to be complete, so the receipt of a cancelled job must fail.
    check(
      'receipt_finish',
      receipt.finish_reason !== 'cancelled',
      'The receipt says that the answer came to its end.',
      'The receipt says that the answer was cancelled before its end.',
    ),
  ];
  const usage = usageCheck(receipt, answer, expected);
  if (usage !== null) checks.push(usage);
  const compare = (name: CheckName, what: string, wanted: string | undefined, stated: string | undefined) => {
    if (wanted !== undefined) {
      checks.push(check(name, wanted === stated, `The receipt names the ${what} of this request.`, `The receipt names another ${what}.`));
    }
  };
  compare('receipt_request', 'body', expected.requestSha256, receipt.request_sha256);
  compare('receipt_job', 'job', expected.jobId, receipt.job_id);
  compare('receipt_nonce', 'nonce', expected.nonce, receipt.client_nonce);
  const isFallback = expected.model !== undefined && (expected.fallbackModels ?? []).includes(receipt.model);
  compare('receipt_model', 'model', isFallback ? receipt.model : expected.model, receipt.model);
  compare('receipt_weights', 'hash of weights', expected.weightsSha256, receipt.weights_sha256);
  compare('receipt_endpoint', 'endpoint', expected.endpoint, receipt.endpoint);
  // Hashes contain no comma, so joined lists are equal only if the lists are.
  compare('receipt_images', 'list of images', expected.images?.map(sha256Hex).join(), (receipt.image_sha256 ?? []).join());
  return { checks, receipt };
}

/** Converts base64url to base64. Empty or invalid text becomes `*`, which no statement accepts. */
function payloadOf(receipt: string): string {
  try {
    return receipt === '' ? '*' : toBase64(fromBase64Url(receipt));
  } catch {
    return '*';
  }
}
