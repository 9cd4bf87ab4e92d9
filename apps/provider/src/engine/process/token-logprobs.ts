/** Log probabilities of generated tokens in the shape of the public formats. */
import type { Logprob, TokenLogprob } from '@inference/formats';
import type { Token } from 'node-llama-cpp';
import type { Vocabulary } from './token-text.js';

/** Stands for "impossible", which JSON cannot say. */
const MIN = -9999;

/**
 * `text`: what came out of the token, which is '' as long as its character is not whole. `logprobs`: of the most likely
 * tokens, and of this one.
 */
export function tokenLogprob(
  vocabulary: Vocabulary,
  token: Token,
  text: string,
  logprobs: ReadonlyMap<Token, number>,
  alternatives: number,
): TokenLogprob {
  const best = [...logprobs].sort((a, b) => b[1] - a[1]).slice(0, alternatives);
  return {
    token: text,
    logprob: Math.max(MIN, logprobs.get(token) ?? MIN),
    bytes: [...vocabulary.entry(token).bytes],
    top_logprobs: best.map(([each, logprob]) => alternative(vocabulary, each, logprob)),
  };
}

/** A token that no model was asked for: the form left nothing else. */
export function forcedLogprob(vocabulary: Vocabulary, token: Token, text: string): TokenLogprob {
  return { token: text, logprob: 0, bytes: [...vocabulary.entry(token).bytes], top_logprobs: [] };
}

function alternative(vocabulary: Vocabulary, token: Token, logprob: number): Logprob {
  const { bytes } = vocabulary.entry(token);
  return { token: new TextDecoder().decode(bytes), logprob: Math.max(MIN, logprob), bytes: [...bytes] };
}
