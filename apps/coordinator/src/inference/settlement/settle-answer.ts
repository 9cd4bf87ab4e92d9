/**
 * The end of an answer that a provider says is complete: everything about it is verified, what it used is bounded and charged, what
 * it shows of its provider is learned, and only then it goes to its client.
 */
import { apiError } from '@inference/formats';
import { INITIAL_CREDIT_BYTES } from '@inference/protocol';
import { promptTokenBound, settlementBounds } from '../../billing/prices/settlement-bounds.js';
import type { ProviderRegistry } from '../../providers/provider-registry.js';
import type { AttemptOutcome } from '../attempt/attempt.js';
import type { AttemptPlan } from '../attempt/hedged-request.js';
import type { Attachments } from '../delivery/delivery.js';
import { imageTokens } from '../request/image-job.js';
import { attemptSummary, type RunningJob } from '../running-job.js';
import { chargedCost } from './bill.js';
import { type CompletionCheck, checkCompletion, type Produced } from './completion-check.js';
import { deliveredUsage } from './delivered-usage.js';
import { failed, type JobOutcome } from './job-outcome.js';

export interface SettlingOptions {
  readonly fleet: ProviderRegistry;
  /** Images that were made and verified could not be put where clients fetch them. */
  readonly onImageStoreError: (error: unknown) => void;
}

/** Verifies, charges and delivers. An answer that does not verify costs nothing, and its provider leaves the routing. */
export async function settleAnswer(
  outcome: AttemptOutcome & { kind: 'completed' },
  { slot, context, otherJobs }: AttemptPlan,
  { job, delivery, bill, gone, span, ...run }: RunningJob,
  { fleet, onImageStoreError }: SettlingOptions,
): Promise<JobOutcome> {
  const { provider } = slot;
  const tried = attemptSummary(provider, run);
  const { identity, receiptVersion } = provider.registration;
  const completedAt = context.issued_at + outcome.elapsedMs;
  const possible = {
    requestBytes: job.body.length,
    responseBytes: outcome.bytes,
    elapsedMs: outcome.elapsedMs,
    hidden: {
      thinks: provider.models.find(({ id }) => id === context.model)?.thinks ?? null,
      couldDecode: (tokensPerSecond: number) => provider.isPlausibleRate(context.model, tokensPerSecond),
    },
  };
  const check = await checkAnswer(outcome, { context, provider: identity, receiptVersion, completedAt, possible }, delivery.attachments);
  const { recalled } = outcome;
  if (!check.ok) {
    fleet.reputations.recordFault(identity.providerId, 'unverified', check.problem);
    return { ...failed(tried, apiError('bad_signature'), 'bad_signature'), problem: check.problem };
  }
  provider.report({ kind: 'answer_verified' });
  const { receipt, signed } = check;
  // What a present client has not drained yet, it still gets.
  const delivered = gone.aborted ? delivery.delivered : outcome.bytes;
  if (gone.aborted && delivered === 0) return { kind: 'client_gone', billed: null, ...tried };
  if (delivery.attachments !== undefined) {
    try {
      await delivery.attachments.keep();
    } catch (error) {
      onImageStoreError(error);
      return failed(tried, apiError('images_unavailable'), 'images_not_kept');
    }
    if (gone.aborted) return { kind: 'client_gone', billed: null, ...tried };
  }
  const claimed = {
    ...deliveredUsage(receipt, { delivered, signed: outcome.bytes }),
    images: job.images === null ? 0 : (receipt.usage.images ?? 0),
  };
  // The whole was found to be possible; this bounds the part of it that a client which left pays for.
  const { lowered: _, ...usage } = settlementBounds(claimed, {
    maxImages: job.images?.count ?? 0,
    maxPromptTokens: promptTokenBound(job.body.length),
    maxCompletionTokens: context.max_tokens,
    deliveredBytes: delivered,
    elapsedMs: outcome.elapsedMs,
  });
  // The client's reading slows no answer that fits into the first credit.
  const isRated = (outcome.bytes <= INITIAL_CREDIT_BYTES || job.images !== null) && !recalled;
  // Token counts of a partial answer, of embeddings or of images are not comparable.
  const isComparable = !recalled && receipt.usage.completion_tokens > 0;
  provider.report({
    kind: 'answer_settled',
    model: context.model,
    completionTokens: usage.completionTokens,
    cachedTokens: usage.cachedTokens,
    weightsSha256: receipt.weights_sha256,
    prefixes: job.chain,
    sample: isRated
      ? {
          promptTokens: usage.promptTokens,
          cachedTokens: usage.cachedTokens,
          completionTokens: job.images === null ? usage.completionTokens : imageTokens(job.images),
          // After hidden tokens, the time of the first content says nothing about throughput.
          streamed: context.stream && receipt.hidden_tokens === 0,
          promptOnly: context.endpoint === '/v1/embeddings',
          elapsedMs: outcome.elapsedMs,
          firstContentMs: outcome.firstContentMs,
          otherJobs,
        }
      : null,
    tokenCounts: isComparable ? { hiddenTokens: receipt.hidden_tokens, completionTokens: receipt.usage.completion_tokens } : null,
  });
  const settling = span.part('inference.settlement');
  const charge = await bill.settle({ providerId: identity.providerId, ...usage });
  settling.end({ 'inference.outcome': charge.kind });
  const billed = { receipt, signed, usage, charge };
  if (gone.aborted) return { kind: 'client_gone', billed, ...tried };
  delivery.deliver(signed, chargedCost(charge));
  return { kind: 'delivered', billed, ...tried };
}

/** The signatures and the receipt, and what an answer holds beside its signed bytes. */
async function checkAnswer(
  { message, finished, recalled, responseSha256, reportedUsage }: AttemptOutcome & { kind: 'completed' },
  produced: Pick<Produced, 'context' | 'provider' | 'receiptVersion' | 'completedAt' | 'possible'>,
  attachments: Attachments | undefined,
): Promise<CompletionCheck> {
  const signed = finished && attachments !== undefined ? attachments.signedSha256() : { sha256: responseSha256 };
  if ('problem' in signed) return { ok: false, problem: signed.problem };
  const check = await checkCompletion(message, { ...produced, finished, recalled, reportedUsage, responseSha256: signed.sha256 });
  const problem = check.ok && attachments !== undefined ? await attachments.examine(check.receipt) : null;
  return problem === null ? check : { ok: false, problem };
}
