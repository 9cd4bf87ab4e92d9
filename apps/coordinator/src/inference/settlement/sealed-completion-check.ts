/**
 * `checkSealedCompletion` verifies a completed answer that the coordinator cannot decrypt (end-to-end mode): the signature over the
 * ciphertext's hash, and the signed receipt.
 */
import {
  CLOCK_TOLERANCE_MS,
  type E2eReceipt,
  e2eReceiptMismatch,
  type JobCompleted,
  type OpenedStatement,
  openE2eReceiptAsync,
  StatementError,
  toBase64Url,
} from '@inference/protocol';
import { verifyP256Async } from '@inference/protocol/crypto';
import type { SealedRequest } from '../request/sealed-request.js';
import { type CompletionCheck, type CompletionProblem, type ObservedAnswer, signatureVerifies, usageProblem } from './completion-check.js';

/** {@link ObservedAnswer} of a sealed request. `responseSha256` is the hash of the ciphertext before the final frame. */
export interface ObservedSealedAnswer extends Omit<ObservedAnswer, 'receiptVersion' | 'reportedUsage' | 'hasTerminalEvent'> {
  readonly sealed: SealedRequest;
}

/** Returns the first fault, the verified receipt of an answer, or a verified refusal, whose receipt has no usage. */
export async function checkSealedCompletion(message: JobCompleted, observed: ObservedSealedAnswer): Promise<CompletionCheck> {
  if (!observed.finished) return { ok: false, problem: 'incomplete_response' };
  if (message.response_sha256 !== observed.responseSha256) return { ok: false, problem: 'response_hash' };
  const { publicKey } = observed.provider;
  const [signatureVerified, opened] = await Promise.all([
    signatureVerifies(publicKey, observed.responseSha256, message.signature),
    openedReceipt(message, publicKey),
  ]);
  if (!signatureVerified) return { ok: false, problem: 'response_signature' };
  if (opened === null) return { ok: false, problem: 'receipt_statement' };
  const receipt = opened.value;
  const { usage } = receipt;
  const problem = receiptProblem(receipt, observed);
  if (problem !== null) return { ok: false, problem };
  const signed = {
    signature: message.signature,
    responseSha256: observed.responseSha256,
    receipt: toBase64Url(opened.payload),
    receiptSignature: message.receipt.signature,
  };
  if (usage === undefined) return { ok: true, kind: 'refused', signed };
  const bounds = { ...observed.bounds, responseBytes: receipt.response_bytes };
  const excess = usageProblem({ usage, hidden_tokens: receipt.hidden_tokens }, { context: observed.context, bounds });
  if (excess !== null) return { ok: false, problem: excess };
  const { model, hidden_tokens, weights_sha256, response_bytes } = receipt;
  return { ok: true, kind: 'answered', receipt: { model, usage, hidden_tokens, weights_sha256, responseBytes: response_bytes }, signed };
}

/** The receipt, if this key signed it. */
async function openedReceipt(message: JobCompleted, publicKey: Uint8Array): Promise<OpenedStatement<E2eReceipt> | null> {
  try {
    return await openE2eReceiptAsync(message.receipt, publicKey, verifyP256Async);
  } catch (error) {
    if (error instanceof StatementError) return null;
    throw error;
  }
}

/** First receipt member that contradicts the job, or null. */
function receiptProblem(receipt: E2eReceipt, observed: ObservedSealedAnswer): CompletionProblem | null {
  const { context, provider, sealed, recalled, completedAt, bounds } = observed;
  const mismatch = e2eReceiptMismatch(receipt, {
    job_id: context.job_id,
    provider_id: provider.providerId,
    se_key_sha256: provider.publicKeySha256,
    model: context.model,
    endpoint: context.endpoint,
    context_sha256: sealed.contextSha256,
    sealed_request_sha256: context.request_sha256,
    sealed_response_sha256: observed.responseSha256,
  });
  if (mismatch !== null) return `receipt.${mismatch}`;
  if (receipt.response_bytes > bounds.responseBytes) return 'receipt.response_bytes';
  if (receipt.finish_reason === 'cancelled' && !recalled) return 'receipt.finish_reason';
  if (receipt.started_at < context.issued_at - CLOCK_TOLERANCE_MS) return 'receipt.started_at';
  if (receipt.completed_at < receipt.started_at) return 'receipt.completed_at';
  if (receipt.completed_at > completedAt + CLOCK_TOLERANCE_MS) return 'receipt.completed_at';
  const { usage } = receipt;
  if (usage === undefined) return null;
  const images = sealed.context.images ?? 0;
  if ((usage.images ?? 0) !== images) return 'receipt.usage.images';
  if ((receipt.image_commitments?.length ?? 0) !== images) return 'receipt.image_commitments';
  if (usage.total_tokens !== usage.prompt_tokens + usage.completion_tokens) return 'receipt.usage.total_tokens';
  if (usage.completion_tokens > context.max_tokens) return 'receipt.usage.completion_tokens';
  return receipt.hidden_tokens > usage.completion_tokens ? 'receipt.hidden_tokens' : null;
}
