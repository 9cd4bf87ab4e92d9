/**
 * Checks what a provider says it produced against what the coordinator knows: the hash of the relayed bytes, the enclave's
 * signature over it, and every field of the signed receipt. Nothing unverified reaches a client's headers or a bill.
 */
import type { SignedParts } from '@inference/formats';
import {
  agreesWithReceipt,
  CLOCK_TOLERANCE_MS,
  canonicalJson,
  fromBase64,
  type JobCompleted,
  type JobContext,
  type OpenedStatement,
  openReceiptAsync,
  type Receipt,
  StatementError,
  toBase64Url,
  type UsageReport,
} from '@inference/protocol';
import { verifyP256Async, verifyResponseSignatureAsync } from '@inference/protocol/crypto';
import { type Bound, promptTokenBound, SILENT_TOKENS, settlementBounds } from '../../billing/prices/settlement-bounds.js';
import type { Identity } from '../../providers/session/admission.js';

/** What was found wrong first. A receipt field is named by itself. */
export type CompletionProblem =
  | 'incomplete_response'
  | 'response_hash'
  | 'response_signature'
  | 'receipt_statement'
  | 'response_body'
  | `receipt.${string}`
  /** The signed counts: they are not those that the response reports (`reported`), or are beyond what is possible. */
  | `usage.${Bound | 'reported' | 'hidden_tokens'}`
  | `image.${string}`;

export type CompletionCheck =
  | { readonly ok: true; readonly receipt: Receipt; readonly signed: SignedParts }
  | { readonly ok: false; readonly problem: CompletionProblem };

export interface Produced {
  readonly context: JobContext;
  readonly provider: Identity;
  /** Of the receipts that it registered to sign. */
  readonly receiptVersion: 1 | 2;
  /** The final frame was opened. */
  readonly finished: boolean;
  /** The provider was told to end the response where it stood. */
  readonly recalled: boolean;
  /** Hexadecimal SHA-256 of the plaintext bytes that came. */
  readonly responseSha256: string;
  /** When it said that it is done, by the clock that the context was issued by: that of the system may have been set in between. */
  readonly completedAt: number;
  readonly reportedUsage: UsageReport;
  readonly possible: PossibleUsage;
}

/** What bounds the counts of one job. */
export interface PossibleUsage {
  readonly requestBytes: number;
  /** Of the response, hashed. */
  readonly responseBytes: number;
  readonly elapsedMs: number;
  readonly hidden: HiddenBounds;
}

/** What bounds tokens that leave no bytes in an answer. */
export interface HiddenBounds {
  /** Whether the model writes think sections; null: not known. */
  readonly thinks: boolean | null;
  /** False: it is far more than the machine can decode, by what was measured. */
  couldDecode(tokensPerSecond: number): boolean;
}

/** Both signatures are verified beside this thread, at the same time. */
export async function checkCompletion(message: JobCompleted, produced: Produced): Promise<CompletionCheck> {
  if (!produced.finished) return bad('incomplete_response');
  if (message.response_sha256 !== produced.responseSha256) return bad('response_hash');
  const { publicKey } = produced.provider;
  const [signatureVerified, receipt] = await Promise.all([
    signatureVerifies(publicKey, produced.responseSha256, message.signature),
    openedReceipt(message, publicKey),
  ]);
  if (!signatureVerified) return bad('response_signature');
  if (receipt === null) return bad('receipt_statement');
  const problem = receiptProblem(receipt.value, produced) ?? usageProblem(receipt.value, produced);
  if (problem !== null) return bad(problem);
  const signed = {
    signature: message.signature,
    responseSha256: produced.responseSha256,
    receipt: toBase64Url(receipt.payload),
    receiptSignature: message.receipt.signature,
  };
  return { ok: true, receipt: receipt.value, signed };
}

/** The receipt, or null when it is no statement of this key. */
async function openedReceipt(message: JobCompleted, publicKey: Uint8Array): Promise<OpenedStatement<Receipt> | null> {
  try {
    return await openReceiptAsync(message.receipt, publicKey, verifyP256Async);
  } catch (error) {
    if (error instanceof StatementError) return null;
    throw error;
  }
}

/** The first field of a receipt that disagrees with the job, or null. */
function receiptProblem(
  receipt: Receipt,
  { context, provider, receiptVersion, recalled, responseSha256, completedAt }: Produced,
): CompletionProblem | null {
  if (receipt.v !== receiptVersion) return 'receipt.v';
  if (receipt.job_id !== context.job_id) return 'receipt.job_id';
  if (receipt.provider_id !== provider.providerId) return 'receipt.provider_id';
  if (receipt.se_key_sha256 !== provider.publicKeySha256) return 'receipt.se_key_sha256';
  if (receipt.model !== context.model) return 'receipt.model';
  if (receipt.endpoint !== context.endpoint) return 'receipt.endpoint';
  if (receipt.request_sha256 !== context.request_sha256) return 'receipt.request_sha256';
  if (canonicalJson(receipt.overrides) !== canonicalJson(context.overrides)) return 'receipt.overrides';
  if (receipt.response_sha256 !== responseSha256) return 'receipt.response_sha256';
  if (receipt.client_nonce !== context.client_nonce) return 'receipt.client_nonce';
  const { prompt_tokens, completion_tokens, total_tokens } = receipt.usage;
  if (total_tokens !== prompt_tokens + completion_tokens) return 'receipt.usage.total_tokens';
  if (completion_tokens > context.max_tokens) return 'receipt.usage.completion_tokens';
  if (receipt.hidden_tokens > completion_tokens) return 'receipt.hidden_tokens';
  if (receipt.finish_reason === 'cancelled' && !recalled) return 'receipt.finish_reason';
  if (receipt.started_at < context.issued_at - CLOCK_TOLERANCE_MS) return 'receipt.started_at';
  if (receipt.completed_at < receipt.started_at) return 'receipt.completed_at';
  return receipt.completed_at > completedAt + CLOCK_TOLERANCE_MS ? 'receipt.completed_at' : null;
}

/** What is impossible about the signed counts, or null. An agent keeps to these bounds, so that only a lie is beyond them. */
function usageProblem(receipt: Receipt, { context, reportedUsage, possible }: Produced): CompletionProblem | null {
  const { usage, hidden_tokens } = receipt;
  if (!agreesWithReceipt(reportedUsage, receipt)) return 'usage.reported';
  const { lowered } = settlementBounds(
    {
      promptTokens: usage.prompt_tokens,
      cachedTokens: usage.cached_tokens ?? 0,
      completionTokens: usage.completion_tokens,
      hiddenTokens: hidden_tokens,
    },
    {
      maxPromptTokens: promptTokenBound(possible.requestBytes),
      maxCompletionTokens: context.max_tokens,
      deliveredBytes: possible.responseBytes,
      elapsedMs: possible.elapsedMs,
    },
  );
  const [first] = lowered;
  if (first !== undefined) return `usage.${first}`;
  if (hidden_tokens === 0) return null;
  const { hidden, elapsedMs } = possible;
  if (hidden.thinks === false) return 'usage.hidden_tokens';
  const tokensPerSecond = (1000 * Math.max(0, hidden_tokens - SILENT_TOKENS)) / Math.max(1, elapsedMs);
  return hidden.couldDecode(tokensPerSecond) ? null : 'usage.time';
}

async function signatureVerifies(publicKey: Uint8Array, responseSha256: string, signature: string): Promise<boolean> {
  let der: Uint8Array;
  try {
    der = fromBase64(signature);
  } catch {
    // Text that is no canonical base64 is no signature.
    return false;
  }
  return verifyResponseSignatureAsync(publicKey, responseSha256, der);
}

function bad(problem: CompletionProblem): CompletionCheck {
  return { ok: false, problem };
}
