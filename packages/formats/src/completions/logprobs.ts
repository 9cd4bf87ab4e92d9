/** Log probabilities in the shape of legacy completions: four lists side by side. */
import type { TokenLogprob } from '../output-event.js';

/** `offset`: UTF-16 units of the text before the first of the tokens. */
export function legacyLogprobs(logprobs: readonly TokenLogprob[], offset: number) {
  let next = offset;
  return {
    tokens: logprobs.map(({ token }) => token),
    token_logprobs: logprobs.map(({ logprob }) => logprob),
    top_logprobs: logprobs.map((each) => Object.fromEntries(each.top_logprobs.map(({ token, logprob }) => [token, logprob]))),
    text_offset: logprobs.map(({ token }) => {
      const start = next;
      next += token.length;
      return start;
    }),
  };
}
