/** What of a signed usage reached the client, when it went away before the end of its stream. */
import type { Receipt } from '@inference/protocol';
import type { ClaimedUsage } from '../../billing/prices/settlement-bounds.js';

export interface DeliveredBytes {
  /** Content bytes that the client's connection took. */
  readonly delivered: number;
  /** Content bytes that the receipt is for. */
  readonly signed: number;
}

/**
 * The tokens to bill. Prompt and hidden tokens were worked through before the text that followed them, so they count in
 * full; visible ones count by the share of the bytes that was delivered, rounded up.
 */
export function deliveredUsage(
  { usage, hidden_tokens }: Pick<Receipt, 'usage' | 'hidden_tokens'>,
  { delivered, signed }: DeliveredBytes,
): ClaimedUsage {
  const { prompt_tokens: promptTokens, cached_tokens: cachedTokens = 0 } = usage;
  const visible = usage.completion_tokens - hidden_tokens;
  const share = Math.min(1, delivered / Math.max(1, signed));
  return {
    promptTokens,
    cachedTokens,
    completionTokens: hidden_tokens + Math.ceil(visible * share),
    hiddenTokens: hidden_tokens,
  };
}
