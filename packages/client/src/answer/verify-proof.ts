/** Verifies the proof at the end of an answer: hash, signature, receipt and commitments. */
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
  readonly candidate: E2eCandidate;
  readonly provider: VerifiedProvider;
  /** `X-Inference-Job-ID`. */
  readonly jobId: string;
  readonly head: E2eAnswerHead;
  /** SHA-256 of the request body, 32 bytes. */
  readonly requestHash: Uint8Array;
  /** SHA-256 of the joined body parts: 32 bytes, and in lowercase hexadecimal. */
  readonly responseHash: { readonly bytes: Uint8Array; readonly hex: string };
  /** SHA-256 of each image part. */
  readonly imageHashes: readonly Uint8Array[];
  readonly responseBytes: number;
  /** Lowercase hexadecimal hash of the sealed answer before its final frame. */
  readonly sealedSha256: string;
  /** Usage stated in the answer. */
  readonly usage: UsageReport;
}

export interface VerifiedProof {
  readonly proof: E2eProof;
  readonly receipt: E2eReceipt;
}

/** Verifies the bytes of a proof part. Throws {@link E2ERefused} `truncated`, `bad_proof`, `wrong_model`. */
export function verifyProof(bytes: Uint8Array, answer: AnswerToVerify): VerifiedProof {
  const proof = proofOf(bytes);
  const { crypto, provider, candidate, sealed, responseHash } = answer;
  if (proof.response_hash !== responseHash.hex) throw new E2ERefused('bad_proof', 'The signed hash is not the hash of the answer.');
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
