/**
 * `checkCompletion` verifies a completed response that the coordinator can read (plain mode): the hash of the received bytes, the signature
 * over the hash, and the signed receipt.
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
  type Usage,
  type UsageReport,
} from '@inference/protocol';
import { verifyP256Async, verifyResponseSignatureAsync } from '@inference/protocol/crypto';
import { type Bound, SILENT_TOKENS, settlementBounds } from '../../billing/prices/settlement-bounds.js';
import type { Identity } from '../../providers/session/registration/admission.js';

/** First fault found. Faults of receipt members contain the member's name. */
export type CompletionProblem =
  | 'incomplete_response'
  | 'response_hash'
  | 'response_signature'
  | 'receipt_statement'
  | 'response_body'
  | `receipt.${string}`
  /** Signed counts that contradict the counts in the response body (`reported`), or exceed a bound. */
  | `usage.${Bound | 'reported' | 'hidden_tokens'}`
  | `image.${string}`;

/** Token counts of an answer that passed verification, from a receipt of either mode. */
export interface VerifiedCounts {
  readonly model: string;
  readonly usage: Usage;
  readonly hidden_tokens: number;
  readonly weights_sha256?: string | undefined;
  /** Size of the answer in plaintext. */
  readonly responseBytes: number;
}

export type CompletionCheck =
  | { readonly ok: true; readonly kind: 'answered'; readonly receipt: VerifiedCounts; readonly signed: SignedParts }
  /** The provider signed a refusal of the sealed request. Free of charge. */
  | { readonly ok: true; readonly kind: 'refused'; readonly signed: SignedParts }
  | { readonly ok: false; readonly problem: CompletionProblem };

/** {@link CompletionCheck} in plain mode. */
export type PlainCompletionCheck =
  | { readonly ok: true; readonly receipt: Receipt; readonly signed: SignedParts }
  | Extract<CompletionCheck, { readonly ok: false }>;

/** What the coordinator itself knows of a completed answer, to compare with the provider's statements. */
export interface ObservedAnswer {
  readonly context: JobContext;
  readonly provider: Identity;
  /** Receipt version that the provider registered. */
  readonly receiptVersion: 1 | 2;
  /** Whether the final frame was read. */
  readonly finished: boolean;
  /** Whether a stream has the terminal event of its format. True for other responses. */
  readonly hasTerminalEvent: boolean;
  /** Whether the coordinator asked the provider to end the response early. */
  readonly recalled: boolean;
  /** SHA-256 of the received plaintext, in hexadecimal. */
  readonly responseSha256: string;
  /** Completion time in milliseconds: `issued_at` of the context plus the measured duration, so that clock changes have no effect. */
  readonly completedAt: number;
  readonly reportedUsage: UsageReport;
  readonly bounds: UsageBounds;
}

/** Bounds for the token counts of one job. */
interface UsageBounds {
  readonly maxPromptTokens: number;
  /** Plaintext bytes of the response, at most. */
  readonly responseBytes: number;
  readonly elapsedMs: number;
  readonly hidden: HiddenBounds;
}

/** Bounds for hidden tokens, which have no bytes in the response: tokens of think segments. */
interface HiddenBounds {
  /** Whether the model writes think segments, if known. */
  readonly thinks: boolean | null;
  /** False if the rate is far above the measured decode rates of the model's providers. */
  couldDecode(tokensPerSecond: number): boolean;
}

/** Returns the first fault, or the verified receipt. Both signatures are verified concurrently, off the main thread. */
export async function checkCompletion(message: JobCompleted, observed: ObservedAnswer): Promise<PlainCompletionCheck> {
  if (!observed.finished) return bad('incomplete_response');
  if (message.response_sha256 !== observed.responseSha256) return bad('response_hash');
  const { publicKey } = observed.provider;
  const [signatureVerified, receipt] = await Promise.all([
    signatureVerifies(publicKey, observed.responseSha256, message.signature),
    openedReceipt(message, publicKey),
  ]);
  if (!signatureVerified) return bad('response_signature');
  if (receipt === null) return bad('receipt_statement');
  // Without its terminal event, a stream is incomplete, unless it was ended early because the client disconnected.
  if (!observed.hasTerminalEvent && receipt.value.finish_reason !== 'cancelled') return bad('incomplete_response');
  const problem =
    receiptProblem(receipt.value, observed) ??
    (agreesWithReceipt(observed.reportedUsage, receipt.value) ? usageProblem(receipt.value, observed) : 'usage.reported');
  if (problem !== null) return bad(problem);
  const signed = {
    signature: message.signature,
    responseSha256: observed.responseSha256,
    receipt: toBase64Url(receipt.payload),
    receiptSignature: message.receipt.signature,
  };
  return { ok: true, receipt: receipt.value, signed };
}

/** The receipt, if this key signed it. */
async function openedReceipt(message: JobCompleted, publicKey: Uint8Array): Promise<OpenedStatement<Receipt> | null> {
  try {
    return await openReceiptAsync(message.receipt, publicKey, verifyP256Async);
  } catch (error) {
    if (error instanceof StatementError) return null;
    throw error;
  }
}

/** First receipt member that contradicts the job, or null. */
function receiptProblem(
  receipt: Receipt,
  { context, provider, receiptVersion, recalled, responseSha256, completedAt }: ObservedAnswer,
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

/** First count that exceeds a bound, or null. Agents apply the same bounds before they sign, so a larger count cannot be honest. */
export function usageProblem(
  { usage, hidden_tokens }: Pick<Receipt, 'usage' | 'hidden_tokens'>,
  { context, bounds }: Pick<ObservedAnswer, 'context' | 'bounds'>,
): CompletionProblem | null {
  const { lowered } = settlementBounds(
    {
      promptTokens: usage.prompt_tokens,
      cachedTokens: usage.cached_tokens ?? 0,
      completionTokens: usage.completion_tokens,
      hiddenTokens: hidden_tokens,
    },
    {
      maxPromptTokens: bounds.maxPromptTokens,
      maxCompletionTokens: context.max_tokens,
      deliveredBytes: bounds.responseBytes,
      elapsedMs: bounds.elapsedMs,
    },
  );
  // `settlementBounds` lists the bounds to which it had to lower a count.
  const [first] = lowered;
  if (first !== undefined) return `usage.${first}`;
  if (hidden_tokens === 0) return null;
  const { hidden, elapsedMs } = bounds;
  if (hidden.thinks === false) return 'usage.hidden_tokens';
  const tokensPerSecond = (1000 * Math.max(0, hidden_tokens - SILENT_TOKENS)) / Math.max(1, elapsedMs);
  return hidden.couldDecode(tokensPerSecond) ? null : 'usage.time';
}

/** Whether `signature` (base64 of DER) is the key's signature over the hash. False for malformed base64. */
export async function signatureVerifies(publicKey: Uint8Array, responseSha256: string, signature: string): Promise<boolean> {
  let der: Uint8Array;
  try {
    der = fromBase64(signature);
  } catch {
    return false;
  }
  return verifyResponseSignatureAsync(publicKey, responseSha256, der);
}

function bad(problem: CompletionProblem): PlainCompletionCheck {
  return { ok: false, problem };
}
