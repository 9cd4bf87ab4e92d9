/** `settleAnswer` verifies a completed response, charges its usage, reports measurements of the provider, and delivers the response. */
import type { SignedParts } from '@inference/formats';
import { INITIAL_CREDIT_BYTES, type JobContext } from '@inference/protocol';
import type { AnswerSample } from '@inference/scheduler';
import { type BoundedUsage, type ClaimedUsage, settlementBounds } from '../../billing/prices/settlement-bounds.js';
import type { ProviderConnection } from '../../providers/provider-connection.js';
import type { AttemptPlan, CompletedAttempt } from '../attempt/attempt.js';
import { attemptSummary, type ModelRun, providerIdOf } from '../model-run.js';
import { imageTokens } from '../request/image-job.js';
import { type JobRequest, maxPromptTokens, requestedImages } from '../request/job-request.js';
import { chargedCost } from './bill.js';
import { type CompletionCheck, checkCompletion, type ObservedAnswer, type VerifiedCounts } from './completion-check.js';
import { type AnswerPace, clientDisconnected, type JobOutcome } from './job-outcome.js';
import type { AttemptResult } from './outcome-policy.js';
import { checkSealedCompletion } from './sealed-completion-check.js';

export type SettledAnswer =
  | Exclude<JobOutcome, { kind: 'failed' | 'refused' }>
  /** The provider's signed refusal of a sealed (end-to-end encrypted) request. Verified, not delivered yet. */
  | { readonly kind: 'refused'; readonly signed: SignedParts }
  /** The answer is neither charged nor delivered. */
  | { readonly kind: 'rejected'; readonly result: AttemptResult & { readonly kind: 'unverified' | 'images_not_stored' } };

/** `onImageStoreError` is called when verified images could not be stored for download. */
export async function settleAnswer(
  completed: CompletedAttempt,
  plan: AttemptPlan,
  run: ModelRun,
  onImageStoreError: (error: unknown) => void,
): Promise<SettledAnswer> {
  const { delivery, bill, clientSignal, span } = run;
  const { context } = plan;
  const { provider } = plan.slot;
  const completedAt = performance.now();
  const summary = attemptSummary(provider, run);
  const promptBound = maxPromptTokens(run.job, plan.maxImageTokens);
  const check = await verifyAnswer(completed, run, { provider, context, maxPromptTokens: promptBound });
  if (!check.ok) return { kind: 'rejected', result: { kind: 'unverified', problem: check.problem } };
  if (check.kind === 'refused') return { kind: 'refused', signed: check.signed };
  provider.report({ kind: 'answer_verified' });
  const { receipt, signed } = check;
  // A client that stays connected will receive all bytes.
  const delivered = clientSignal.aborted ? delivery.delivered : completed.bytes;
  if (clientSignal.aborted && delivered === 0) return clientDisconnected(summary);
  if (delivery.attachments !== undefined) {
    try {
      await delivery.attachments.store();
    } catch (error) {
      onImageStoreError(error);
      return { kind: 'rejected', result: { kind: 'images_not_stored' } };
    }
    if (clientSignal.aborted) return clientDisconnected(summary);
  }
  const usage = chargedUsage(receipt, completed, { delivered, job: run.job, context, maxPromptTokens: promptBound });
  const sample = throughputSample(completed, run, receipt, { usage, otherJobCount: plan.otherJobCount });
  reportSettled(completed, plan, run, { receipt, usage, sample });
  const settling = span.child('inference.settlement');
  const charge = await bill.settle({ providerId: providerIdOf(provider), model: context.model, ...usage });
  settling.end({ 'inference.outcome': charge.kind });
  const billed = { receipt, signed, usage, charge, pace: sample === null ? null : paceOf(sample, completedAt) };
  if (clientSignal.aborted) return clientDisconnected(summary, billed);
  delivery.deliver(signed, chargedCost(charge));
  return { kind: 'delivered', billed, ...summary };
}

type ChargedUsage = Omit<BoundedUsage, 'lowered'>;

interface ChargeFacts {
  /** Content bytes that the client has received or will receive. */
  readonly delivered: number;
  readonly job: JobRequest;
  readonly context: JobContext;
  readonly maxPromptTokens: number;
}

/** Usage to charge. Bounded again, because a disconnected client pays for a part, and verification bounded the whole response only. */
function chargedUsage(
  receipt: VerifiedCounts,
  { bytes: signed, elapsedMs }: CompletedAttempt,
  { delivered, job, context, maxPromptTokens }: ChargeFacts,
): ChargedUsage {
  const claimed = { images: receipt.usage.images ?? 0, ...deliveredUsage(receipt, { delivered, signed }) };
  const { lowered: _, ...usage } = settlementBounds(claimed, {
    maxImages: requestedImages(job),
    maxPromptTokens,
    maxCompletionTokens: context.max_tokens,
    deliveredBytes: deliveredPlaintext(receipt.responseBytes, { delivered, signed }),
    elapsedMs,
  });
  return usage;
}

/** Reports the answer to the provider connection: throughput, prefix cache, weights and hidden tokens. */
function reportSettled(
  { recalled }: CompletedAttempt,
  { slot: { provider }, context }: AttemptPlan,
  { job }: ModelRun,
  { receipt, usage, sample }: { readonly receipt: VerifiedCounts; readonly usage: ChargedUsage; readonly sample: AnswerSample | null },
): void {
  const { hidden_tokens: hiddenTokens } = receipt;
  const completionTokens = receipt.usage.completion_tokens;
  provider.report({
    kind: 'answer_settled',
    model: context.model,
    completionTokens: usage.completionTokens,
    weightsSha256: receipt.weights_sha256,
    prefixes: job.promptPrefixes,
    cachedTokens: usage.cachedTokens,
    sample,
    tokenCounts: !recalled && completionTokens > 0 ? { hiddenTokens, completionTokens } : null,
  });
}

/** Plaintext bytes in the part of the answer that was delivered. */
function deliveredPlaintext(responseBytes: number, { delivered, signed }: DeliveredBytes): number {
  // At least 1, because `settlementBounds` bills nothing for 0 bytes.
  if (delivered >= signed) return Math.max(1, responseBytes);
  return Math.ceil((responseBytes * delivered) / Math.max(1, signed));
}

/** Verifies the signatures, the receipt and, of an image response, the images. */
async function verifyAnswer(
  { message, finished, hasTerminalEvent, recalled, responseSha256, reportedUsage, bytes, plaintextBytes, elapsedMs }: CompletedAttempt,
  { job, delivery: { attachments } }: ModelRun,
  {
    provider,
    context,
    maxPromptTokens,
  }: { readonly provider: ProviderConnection; readonly context: JobContext; readonly maxPromptTokens: number },
): Promise<CompletionCheck> {
  const { identity, receiptVersion } = provider.registration;
  const observed: ObservedAnswer = {
    context,
    provider: identity,
    receiptVersion,
    finished,
    hasTerminalEvent,
    recalled,
    responseSha256,
    completedAt: context.issued_at + elapsedMs,
    reportedUsage,
    bounds: { maxPromptTokens, responseBytes: plaintextBytes, elapsedMs, hidden: hiddenBounds(provider, context.model) },
  };
  if (job.sealed !== null) return checkSealedCompletion(message, { ...observed, sealed: job.sealed });
  const signed = finished && attachments !== undefined ? attachments.signedSha256() : { sha256: responseSha256 };
  if ('problem' in signed) return { ok: false, problem: signed.problem };
  const check = await checkCompletion(message, { ...observed, responseSha256: signed.sha256 });
  const problem = check.ok && attachments !== undefined ? await attachments.verify(check.receipt) : null;
  if (problem !== null) return { ok: false, problem };
  if (!check.ok) return check;
  // Picks members, because unknown members of a receipt must not replace the measured size.
  const { model, usage, hidden_tokens, weights_sha256 } = check.receipt;
  const receipt: VerifiedCounts = { model, usage, hidden_tokens, weights_sha256, responseBytes: bytes };
  return { ok: true, kind: 'answered', receipt, signed: check.signed };
}

function hiddenBounds(provider: ProviderConnection, model: string): ObservedAnswer['bounds']['hidden'] {
  return {
    thinks: provider.models.find(({ id }) => id === model)?.thinks ?? null,
    couldDecode: (tokensPerSecond) => provider.isPlausibleRate(model, tokensPerSecond),
  };
}

/** Null if a slow client may have slowed the provider down, the response was ended early, or its work is unknown. */
function throughputSample(
  { bytes, recalled, elapsedMs, firstContentMs }: CompletedAttempt,
  { job }: ModelRun,
  receipt: VerifiedCounts,
  {
    usage,
    otherJobCount,
  }: { readonly usage: Pick<BoundedUsage, 'promptTokens' | 'cachedTokens' | 'completionTokens'>; otherJobCount: number },
): AnswerSample | null {
  // A response within the initial credit never waits for the client.
  const isPacedByProvider = bytes <= INITIAL_CREDIT_BYTES || job.images !== null;
  // The size of images in sealed jobs is unknown.
  if (!isPacedByProvider || recalled || (job.images === null && requestedImages(job) > 0)) return null;
  return {
    promptTokens: usage.promptTokens,
    cachedTokens: usage.cachedTokens,
    completionTokens: job.images === null ? usage.completionTokens : imageTokens(job.images),
    // With hidden tokens, the time to the first content does not measure prefill.
    streamed: job.params.stream && receipt.hidden_tokens === 0,
    promptOnly: job.endpoint === '/v1/embeddings',
    elapsedMs,
    firstContentMs,
    otherJobs: otherJobCount,
  };
}

function paceOf({ elapsedMs, firstContentMs, streamed, completionTokens }: AnswerSample, completedAt: number): AnswerPace {
  return { completedAt, contentMs: elapsedMs - firstContentMs, decodedTokens: streamed ? completionTokens : null };
}

interface DeliveredBytes {
  /** Content bytes that the client's connection has taken. */
  readonly delivered: number;
  /** Content bytes that the receipt covers. */
  readonly signed: number;
}

/** Usage billed after a disconnect: prompt and hidden tokens in full, visible tokens by the delivered share of bytes. */
export function deliveredUsage(
  { usage, hidden_tokens }: Pick<VerifiedCounts, 'usage' | 'hidden_tokens'>,
  { delivered, signed }: DeliveredBytes,
): ClaimedUsage {
  const { prompt_tokens: promptTokens, cached_tokens: cachedTokens = 0 } = usage;
  const visible = usage.completion_tokens - hidden_tokens;
  const share = Math.min(1, delivered / Math.max(1, signed));
  return { promptTokens, cachedTokens, completionTokens: hidden_tokens + Math.ceil(visible * share), hiddenTokens: hidden_tokens };
}
