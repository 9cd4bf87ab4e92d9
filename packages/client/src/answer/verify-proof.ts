/**
 * Verifies the proof at the end of an answer: hash, signature and receipt, with its commitments, finish reason and usage.
 *
 * The receipt is a signed statement of the provider about the job. Commitments are keyed hashes of the contents.
 */
import {
  agreesWithReceipt,
  type E2eAnswerHead,
  type E2eCandidate,
  type E2eCrypto,
  E2eError,
  type E2eProof,
  type E2eReceipt,
  e2eReceiptMismatch,
  fromBase64,
  type JobId,
  openE2eReceipt,
  type ProviderId,
  parseE2eProof,
  type SealedE2eRequest,
  StatementError,
  type UsageReport,
  utf8,
} from '@inference/protocol';
import type { VerifiedProvider } from '../network/verified-provider.js';
import { E2ERefused } from '../refusal.js';

export interface AnswerToVerify {
  readonly crypto: E2eCrypto;
  readonly sealed: SealedE2eRequest;
  /** The one of `sealed.candidates` that answered. Its keys check the commitments. */
  readonly candidate: E2eCandidate;
  readonly provider: VerifiedProvider;
  /** Header `X-Inference-Job-ID` of the response. */
  readonly jobId: string;
  readonly head: E2eAnswerHead;
  /** SHA-256 of the request body before sealing, 32 bytes. */
  readonly requestHash: Uint8Array;
  /** SHA-256 of the body, joined from its parts: as 32 bytes, and in lowercase hexadecimal. */
  readonly responseHash: { readonly bytes: Uint8Array; readonly hex: string };
  /** SHA-256 of each image part, or of each image inside the body, in order. */
  readonly imageHashes: readonly Uint8Array[];
  /** Plaintext bytes of the body and image parts. */
  readonly responseBytes: number;
  /** Lowercase hexadecimal SHA-256 of the sealed answer before its final frame, without keep-alives. */
  readonly sealedSha256: string;
  /** Usage stated in the answer. */
  readonly usage: UsageReport;
}

export interface VerifiedProof {
  readonly proof: E2eProof;
  readonly receipt: E2eReceipt;
}

/**
 * Verifies the bytes of a proof part.
 *
 * @throws {E2ERefused} `wrong_model` for another model or endpoint, `truncated` for a cancelled answer, otherwise `bad_proof`.
 */
export function verifyProof(bytes: Uint8Array, answer: AnswerToVerify): VerifiedProof {
  const proof = proofOf(bytes);
  const { crypto, provider, candidate, sealed, responseHash } = answer;
  if (proof.response_hash !== responseHash.hex) throw new E2ERefused('bad_proof', 'The signed hash is not the hash of the answer.');
  // The signature covers the hexadecimal text of the hash.
  if (!crypto.verifyP256(provider.enclaveKey, utf8(proof.response_hash), signatureOf(proof))) {
    throw new E2ERefused('bad_proof', "The provider's enclave key did not sign the answer.");
  }
  const receipt = receiptOf(crypto, proof, provider.enclaveKey);
  const { model, endpoint } = sealed.context;
  const { imageHashes } = answer;
  const mismatch = e2eReceiptMismatch(receipt, {
    job_id: answer.jobId as JobId,
    provider_id: provider.providerId as ProviderId,
    se_key_sha256: provider.enclaveKeySha256,
    model,
    endpoint,
    context_sha256: sealed.contextSha256,
    sealed_request_sha256: sealed.sealedRequestSha256,
    sealed_response_sha256: answer.sealedSha256,
    request_commitment: candidate.commitments.request(answer.requestHash),
    response_commitment: candidate.commitments.response(responseHash.bytes),
    response_bytes: answer.responseBytes,
    ...(imageHashes.length === 0 ? {} : { image_commitments: imageHashes.map((hash, index) => candidate.commitments.image(index, hash)) }),
  });
  if (mismatch === 'model' || mismatch === 'endpoint') throw new E2ERefused('wrong_model', `The receipt names another ${mismatch}.`);
  if (mismatch !== null) throw new E2ERefused('bad_proof', `The receipt names another ${mismatch}.`);
  requireFinishAndUsage(receipt, answer);
  return { proof, receipt };
}

function proofOf(bytes: Uint8Array): E2eProof {
  try {
    return parseE2eProof(bytes);
  } catch (error) {
    if (error instanceof E2eError) throw badProof('The proof of the answer is not valid.', error);
    throw error;
  }
}

function receiptOf({ verifyP256 }: E2eCrypto, { receipt }: E2eProof, enclaveKey: Uint8Array): E2eReceipt {
  try {
    return openE2eReceipt(receipt, enclaveKey, verifyP256).value;
  } catch (error) {
    if (error instanceof StatementError) throw badProof(`The receipt does not verify: ${error.problem}.`, error);
    throw error;
  }
}

function badProof(message: string, cause: Error): E2ERefused {
  // A refusal by this client has no HTTP status.
  return new E2ERefused('bad_proof', message, null, { cause });
}

function requireFinishAndUsage(receipt: E2eReceipt, { head, usage }: AnswerToVerify): void {
  if (receipt.finish_reason === 'cancelled') throw new E2ERefused('truncated', 'The answer was cancelled before its end.');
  const isRefusedInReceipt = receipt.finish_reason === 'refused';
  const isRefusedInHead = head.status >= 400;
  if (isRefusedInReceipt !== isRefusedInHead) {
    throw new E2ERefused('bad_proof', 'The receipt and the status disagree on whether the provider refused.');
  }
  const { usage: counted } = receipt;
  // Only the receipt of a refusal counts no usage (`e2eReceiptProblem`).
  if (counted !== undefined && !agreesWithReceipt(usage, { ...receipt, usage: counted })) {
    throw new E2ERefused('bad_proof', 'The receipt counts other tokens than the answer reports.');
  }
}

function signatureOf({ se_signature }: E2eProof): Uint8Array {
  try {
    return fromBase64(se_signature);
  } catch {
    // An empty signature never verifies.
    return new Uint8Array();
  }
}
