/** Builds the `usage` member of chat and legacy completions, also for the usage chunk of a stream. */
import type { FinishEvent } from './output-event.js';

export function openAiUsage({ usage, hiddenTokens }: FinishEvent) {
  return {
    prompt_tokens: usage.prompt_tokens,
    completion_tokens: usage.completion_tokens,
    total_tokens: usage.total_tokens,
    prompt_tokens_details: { cached_tokens: usage.cached_tokens ?? 0 },
    completion_tokens_details: { reasoning_tokens: hiddenTokens },
  };
}
