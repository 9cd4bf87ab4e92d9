/**
 * `settlementBounds` limits the token and image counts that a provider signed to what the job and its response bytes permit.
 *
 * A signature proves who counted, not that the count is correct. A response whose counts exceed a bound is rejected. A client that got
 * only a part of a response pays for that part.
 */

import { promptTokenBound, SILENT_TOKENS, TEMPLATE_TOKENS, visibleTokenBound } from '@inference/protocol';

export { promptTokenBound, SILENT_TOKENS, TEMPLATE_TOKENS };

/** Counts signed by the provider, not validated yet. */
export interface ClaimedUsage {
  readonly promptTokens: number;
  /** Includes hidden tokens. */
  readonly completionTokens: number;
  readonly hiddenTokens: number;
  readonly cachedTokens: number;
  readonly images?: number;
}

/** Limits of the job, and measurements by the coordinator. */
interface DeliveryFacts {
  /** Maximum prompt tokens for the size of the request body, from {@link promptTokenBound}. */
  readonly maxPromptTokens: number;
  /** The job's `max_tokens`, including hidden tokens. */
  readonly maxCompletionTokens: number;
  readonly maxImages?: number;
  /** Plaintext bytes of the response, or of the part that reached the client, SSE framing included. For zero bytes, nothing is billed. */
  readonly deliveredBytes: number;
  /** Duration of the attempt in milliseconds, from sending the job to its end. Without it, time is no bound. */
  readonly elapsedMs?: number;
}

/** Bound that a count exceeds. The names appear in the reasons for rejected responses. */
export type Bound =
  | 'not_a_count'
  | 'nothing_delivered'
  /** Prompt tokens: the bound for the size of the request body. */
  | 'prompt_bytes'
  /** Completion tokens: the job's `max_tokens`. */
  | 'max_tokens'
  /** Hidden tokens: the completion tokens. */
  | 'completion'
  /** Visible tokens: the delivered bytes. */
  | 'delivered_bytes'
  /** Hidden tokens: the duration. */
  | 'time'
  /** Cached tokens: the prompt tokens. */
  | 'prompt'
  | 'images';

export interface BoundedUsage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly hiddenTokens: number;
  readonly cachedTokens: number;
  readonly images: number;
  /** Bounds that the claim exceeds. Empty for an honest provider and a whole response. */
  readonly lowered: readonly Bound[];
}

/** Maximum decode rate of one sequence. Far above that of any machine, even with tiny demonstration models. */
const MAX_TOKENS_PER_SECOND = 20_000;

/**
 * Lowers each claimed count to its bound:
 * - A count that is negative or not a whole number becomes zero.
 * - If nothing was delivered, all counts become zero.
 * - Visible tokens (completion less hidden): at most one per delivered byte, plus {@link SILENT_TOKENS}.
 * - Hidden tokens leave no bytes: at most {@link MAX_TOKENS_PER_SECOND} over the duration, plus {@link SILENT_TOKENS}.
 * - The other bounds are those of {@link Bound} and {@link DeliveryFacts}.
 */
export function settlementBounds(claim: ClaimedUsage, facts: DeliveryFacts): BoundedUsage {
  const lowered = new Set<Bound>();
  const count = (value: number): number => {
    if (Number.isSafeInteger(value) && value >= 0) return value;
    lowered.add('not_a_count');
    return 0;
  };
  const limited = (value: number, limit: number, bound: Bound): number => {
    if (value <= limit) return value;
    lowered.add(bound);
    return Math.max(0, Math.floor(limit));
  };
  const claimed = {
    prompt: count(claim.promptTokens),
    completion: count(claim.completionTokens),
    hidden: count(claim.hiddenTokens),
    cached: count(claim.cachedTokens),
    images: count(claim.images ?? 0),
  };
  if (!(facts.deliveredBytes > 0)) {
    if (Object.values(claimed).some((value) => value > 0)) lowered.add('nothing_delivered');
    return { promptTokens: 0, completionTokens: 0, hiddenTokens: 0, cachedTokens: 0, images: 0, lowered: [...lowered] };
  }
  const promptTokens = limited(claimed.prompt, facts.maxPromptTokens, 'prompt_bytes');
  const completion = limited(claimed.completion, facts.maxCompletionTokens, 'max_tokens');
  const hidden = Math.min(limited(claimed.hidden, claimed.completion, 'completion'), completion);
  const visible = limited(completion - hidden, visibleTokenBound(facts.deliveredBytes), 'delivered_bytes');
  const possible = facts.elapsedMs === undefined ? hidden : SILENT_TOKENS + (Math.max(0, facts.elapsedMs) / 1000) * MAX_TOKENS_PER_SECOND;
  const hiddenTokens = limited(hidden, possible, 'time');
  return {
    promptTokens,
    completionTokens: visible + hiddenTokens,
    hiddenTokens,
    cachedTokens: limited(claimed.cached, promptTokens, 'prompt'),
    images: limited(claimed.images, facts.maxImages ?? 0, 'images'),
    lowered: [...lowered],
  };
}
