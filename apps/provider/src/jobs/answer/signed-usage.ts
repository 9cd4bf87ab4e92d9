/** Token counts for usage and receipt, limited to what coordinators find plausible: they reject higher counts. */
import { promptTokenBound, type Usage, visibleTokenBound } from '@inference/protocol';

export interface PromptCounts {
  readonly promptTokens: number;
  readonly cachedTokens?: number;
}

/** Counts of a prompt, limited by the bytes of its request body without images and by the maximum tokens of its images. */
export function signedPrompt({ promptTokens, cachedTokens = 0 }: PromptCounts, textBytes: number, imageTokens = 0): Required<PromptCounts> {
  const prompt = Math.min(promptTokens, promptTokenBound(textBytes, imageTokens));
  return { promptTokens: prompt, cachedTokens: Math.min(cachedTokens, prompt) };
}

export interface OutputCounts {
  /** Hidden tokens included. */
  readonly completionTokens: number;
  readonly hiddenTokens: number;
}

/** Counts of an output: the bytes of the answer limit visible tokens, and a model that never thinks has no hidden ones. */
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
