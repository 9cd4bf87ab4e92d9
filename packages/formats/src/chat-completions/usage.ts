/** The `usage` member of chat completions and of the usage chunk. */
import type { Usage } from '@inference/protocol';

export function chatUsage(usage: Usage, hiddenTokens: number) {
  return {
    prompt_tokens: usage.prompt_tokens,
    completion_tokens: usage.completion_tokens,
    total_tokens: usage.total_tokens,
    completion_tokens_details: { reasoning_tokens: hiddenTokens },
  };
}
