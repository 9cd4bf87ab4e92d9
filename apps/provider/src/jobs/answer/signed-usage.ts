/**
 * The counts that an answer reports and its receipt signs. A coordinator takes counts beyond what the bytes allow for a lie, so that
 * the rare honest excess is left out here: a template that repeats much, tokens that leave no bytes, thoughts of a model that has none.
 */
import { promptTokenBound, type Usage, visibleTokenBound } from '@inference/protocol';

export interface PromptCounts {
  readonly promptTokens: number;
  readonly cachedTokens?: number;
}

/** Counts of a prompt in a request body of so many bytes. */
export function signedPrompt({ promptTokens, cachedTokens = 0 }: PromptCounts, requestBytes: number): Required<PromptCounts> {
  const prompt = Math.min(promptTokens, promptTokenBound(requestBytes));
  return { promptTokens: prompt, cachedTokens: Math.min(cachedTokens, prompt) };
}

export interface OutputCounts {
  /** Hidden ones included. */
  readonly completionTokens: number;
  readonly hiddenTokens: number;
}

/** Counts of an output that came to an answer of so many bytes. `thinks` is what the offer of the model says. */
export function signedOutput(
  { completionTokens, hiddenTokens }: OutputCounts,
  { thinks, answerBytes }: { readonly thinks: boolean | null; readonly answerBytes: number },
): OutputCounts {
  const hidden = thinks === false ? 0 : hiddenTokens;
  const visible = Math.min(completionTokens - hiddenTokens, visibleTokenBound(answerBytes));
  return { completionTokens: visible + hidden, hiddenTokens: hidden };
}

export function usageOf({ promptTokens, cachedTokens = 0 }: PromptCounts, completionTokens: number): Usage {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    ...(cachedTokens === 0 ? {} : { cached_tokens: cachedTokens }),
  };
}
