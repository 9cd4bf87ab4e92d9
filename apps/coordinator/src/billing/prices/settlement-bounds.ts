/**
 * Holds a usage that a provider signed to what the job allowed and what was delivered. Pure. A signature proves who counted,
 * not that they counted right: each bound here is one way in which a lying provider is kept from being paid for its lie.
 */

import { promptTokenBound, SILENT_TOKENS, TEMPLATE_TOKENS, visibleTokenBound } from '@inference/protocol';

export { promptTokenBound, SILENT_TOKENS, TEMPLATE_TOKENS };

/** Counts as the provider signed them. Anything may stand here. */
export interface ClaimedUsage {
  readonly promptTokens: number;
  /** Hidden ones included. */
  readonly completionTokens: number;
  readonly hiddenTokens: number;
  readonly cachedTokens: number;
  readonly images?: number;
}

/** What the coordinator knows by itself. */
export interface DeliveryFacts {
  /** Most prompt tokens that the request's bytes can make: {@link promptTokenBound}. */
  readonly maxPromptTokens: number;
  /** The job's max_tokens, which hidden tokens count towards. */
  readonly maxCompletionTokens: number;
  readonly maxImages?: number;
  /** Bytes of the response that reached the client, less the framing the caller can account for. Zero: nothing is billed. */
  readonly deliveredBytes: number;
  /** From the job's acceptance to its end, in milliseconds; without it there is no bound by time. */
  readonly elapsedMs?: number;
}

export type Bound = 'not_a_count' | 'nothing_delivered' | 'prompt_bytes' | 'max_tokens' | 'delivered_bytes' | 'time' | 'prompt' | 'images';

export interface BoundedUsage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly hiddenTokens: number;
  readonly cachedTokens: number;
  readonly images: number;
  /** Bounds that the claim exceeds. Empty for an honest provider: an answer whose claim exceeds one is refused as a lie. */
  readonly lowered: readonly Bound[];
}

/** Far faster than any machine decodes one sequence, small demonstration models included. */
export const MAX_TOKENS_PER_SECOND = 20_000;

/**
 * The usage that may be billed. Each count is at most the claimed one, and:
 * - what is no whole number, or negative, is zero;
 * - nothing delivered, nothing billed;
 * - prompt tokens: at most what the body's bytes can make; cached tokens are a part of them;
 * - completion tokens, hidden ones included: at most max_tokens;
 * - hidden tokens are a part of the completion tokens: the rest must show as at least a byte each in what was delivered,
 *   {@link SILENT_TOKENS} aside, so that only the tokens of think sections may be far more than the bytes;
 * - hidden tokens, which leave no bytes: at most {@link MOST_TOKENS_PER_SECOND}. Visible ones may come from an instant provider;
 * - images: at most as many as were asked for.
 */
export function settlementBounds(claim: ClaimedUsage, facts: DeliveryFacts): BoundedUsage {
  const lowered = new Set<Bound>();
  const count = (value: number): number => {
    if (Number.isSafeInteger(value) && value >= 0) return value;
    lowered.add('not_a_count');
    return 0;
  };
  const atMost = (value: number, limit: number, bound: Bound): number => {
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
    if (claimed.prompt + claimed.completion + claimed.images > 0) lowered.add('nothing_delivered');
    return { promptTokens: 0, completionTokens: 0, hiddenTokens: 0, cachedTokens: 0, images: 0, lowered: [...lowered] };
  }
  const promptTokens = atMost(claimed.prompt, facts.maxPromptTokens, 'prompt_bytes');
  const completion = atMost(claimed.completion, facts.maxCompletionTokens, 'max_tokens');
  const hidden = Math.min(claimed.hidden, completion);
  const visible = atMost(completion - hidden, visibleTokenBound(facts.deliveredBytes), 'delivered_bytes');
  const possible = facts.elapsedMs === undefined ? hidden : SILENT_TOKENS + (Math.max(0, facts.elapsedMs) / 1000) * MAX_TOKENS_PER_SECOND;
  const hiddenTokens = atMost(hidden, possible, 'time');
  return {
    promptTokens,
    completionTokens: visible + hiddenTokens,
    hiddenTokens,
    cachedTokens: atMost(claimed.cached, promptTokens, 'prompt'),
    images: atMost(claimed.images, facts.maxImages ?? 0, 'images'),
    lowered: [...lowered],
  };
}
