/**
 * The end of an answer that a provider says is complete: everything about it is verified, what it used is bounded and charged, what
 * it shows of its provider is learned, and only then it goes to its client.
 */
import { apiError } from '@inference/formats';
import { INITIAL_CREDIT_BYTES } from '@inference/protocol';
import { promptTokenBound, settlementBounds } from '../../billing/prices/settlement-bounds.js';
import type { ProviderRegistry } from '../../providers/provider-registry.js';
import type { Outcome } from '../attempt/attempt.js';
import type { Entrant } from '../attempt/hedged-request.js';
import type { Parcel } from '../delivery/delivery.js';
import { type Run, triedOn } from '../job-run.js';
import { imageTokens } from '../request/image-job.js';
import { chargedCost } from './bill.js';
import { type CompletionCheck, checkCompletion, type Produced } from './completion-check.js';
import { deliveredUsage } from './delivered-usage.js';
import { failed, type JobEnd } from './job-end.js';

export interface SettlingOptions {
  readonly fleet: ProviderRegistry;
  /** Images that were made and verified could not be put where clients fetch them. */
  readonly onKeepFailed: (error: unknown) => void;
}

/** Verifies, charges and delivers. An answer that does not verify costs nothing, and its provider leaves the routing. */
export async function settleAnswer(
  outcome: Outcome & { kind: 'completed' },
  { slot, context, otherJobs }: Entrant,
  { job, delivery, bill, gone, span, ...run }: Run,
  { fleet, onKeepFailed }: SettlingOptions,
): Promise<JobEnd> {
  const { session } = slot;
  const tried = triedOn(session, run);
  const { identity, receiptVersion } = session.registration;
  const completedAt = context.issued_at + outcome.elapsedMs;
  const possible = {
    requestBytes: job.body.length,
    responseBytes: outcome.bytes,
    elapsedMs: outcome.elapsedMs,
    hidden: {
      thinks: session.models.find(({ id }) => id === context.model)?.thinks ?? null,
      couldDecode: (tokensPerSecond: number) => fleet.isPlausibleRate(session, context.model, tokensPerSecond),
    },
  };
  const check = await checkAnswer(outcome, { context, provider: identity, receiptVersion, completedAt, possible }, delivery.parcel);
  const { recalled } = outcome;
  if (!check.ok) {
    fleet.reputations.recordFault(identity.providerId, 'unverified', check.problem);
    return { ...failed(tried, apiError('bad_signature'), 'bad_signature'), problem: check.problem };
  }
  fleet.answerVerified(identity.providerId);
  const { receipt, signed } = check;
  // What a present client has not drained yet, it still gets.
  const delivered = gone.aborted ? delivery.delivered : outcome.bytes;
  if (gone.aborted && delivered === 0) return { kind: 'client_gone', billed: null, ...tried };
  if (delivery.parcel !== undefined) {
    try {
      await delivery.parcel.keep();
    } catch (error) {
      onKeepFailed(error);
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
  session.statistics.jobBilled(usage.completionTokens);
  session.statistics.weightsSigned(context.model, receipt.weights_sha256);
  fleet.recordPrefixes(session, job.chain, usage.cachedTokens);
  // What fits into the first credit was never slowed by the client's reading.
  if ((outcome.bytes <= INITIAL_CREDIT_BYTES || job.images !== null) && !recalled) {
    const { promptTokens, cachedTokens } = usage;
    const completionTokens = job.images === null ? usage.completionTokens : imageTokens(job.images);
    const { elapsedMs, firstContentMs } = outcome;
    const { stream, model } = context;
    const promptOnly = context.endpoint === '/v1/embeddings';
    // Of a model that thought, the first content says nothing of its speed.
    const streamed = stream && receipt.hidden_tokens === 0;
    fleet.recordThroughput(session, model, {
      promptTokens,
      cachedTokens,
      completionTokens,
      streamed,
      promptOnly,
      elapsedMs,
      firstContentMs,
      otherJobs,
    });
  }
  // Counts of a part, or of vectors and images, are no answer to compare.
  if (!recalled && receipt.usage.completion_tokens > 0) {
    fleet.recordTokenCounts(session, context.model, {
      hiddenTokens: receipt.hidden_tokens,
      completionTokens: receipt.usage.completion_tokens,
    });
  }
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
  { message, finished, recalled, responseSha256, reportedUsage }: Outcome & { kind: 'completed' },
  produced: Pick<Produced, 'context' | 'provider' | 'receiptVersion' | 'completedAt' | 'possible'>,
  parcel: Parcel | undefined,
): Promise<CompletionCheck> {
  const signed = finished && parcel !== undefined ? parcel.signedSha256() : { sha256: responseSha256 };
  if ('problem' in signed) return { ok: false, problem: signed.problem };
  const check = await checkCompletion(message, { ...produced, finished, recalled, reportedUsage, responseSha256: signed.sha256 });
  const problem = check.ok && parcel !== undefined ? await parcel.examine(check.receipt) : null;
  return problem === null ? check : { ok: false, problem };
}
