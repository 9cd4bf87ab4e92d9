/** `RawLogprobs`: log probabilities before temperature, penalties and grammar, from two extra samplers that leave logits unchanged. */

import type { Logprob, TokenLogprob } from '@inference/formats';
import type { Token } from 'node-llama-cpp';
import type { NativeContext, NativeSampler, NativeSamplers, Pairs } from '../native.js';
import type { Vocabulary } from './token-text.js';

/** Maximum number of reported alternatives per token. */
const TOP = 20;

export class RawLogprobs {
  /** Leaves all candidates unchanged and chooses the likeliest. */
  readonly #greedy: NativeSampler;
  /** Selects the likeliest candidates. */
  readonly #top: NativeSampler;

  constructor(
    private readonly context: NativeContext,
    samplers: Pick<NativeSamplers, 'newSampler'>,
  ) {
    this.#greedy = samplers.newSampler({ temperature: 0 });
    this.#top = samplers.newSampler({ temperature: 1, topK: TOP, seed: 1 });
  }

  /** Log probabilities of the likeliest tokens and of the given token, at the batch position of its sampling. */
  async of(batchIndex: number, token: Token): Promise<ReadonlyMap<Token, number>> {
    // Issued together; the single compute thread runs the calls in order. First: logits of `token` and of the selected token, and the
    // weight of all. Second: logits of the `TOP` likeliest tokens.
    const [all, best] = await Promise.all([
      this.context.sampleToken(batchIndex, this.#greedy, false, false, [[token], false, false, true, 0], true),
      this.context.sampleToken(batchIndex, this.#top, false, false, [[], false, false, false, TOP], false),
    ]);
    const [, , , logits = [], weight = 0] = all;
    const known = pairsOf(logits);
    const candidates = new Map([...pairsOf(best[3] ?? []), ...known.filter(([each]) => each === token)]);
    // The greedy sampler chose the likeliest token, so its logit is the maximum.
    const total = Math.max(...known.map(([, logit]) => logit)) + Math.log(weight);
    return new Map([...candidates].map(([each, logit]) => [each, logit - total]));
  }
}

function pairsOf(flat: Pairs): [Token, number][] {
  const pairs: [Token, number][] = [];
  for (let i = 0; i + 1 < flat.length; i += 2) pairs.push([flat[i] as Token, flat[i + 1] as number]);
  return pairs;
}

/** Log probability of an impossible token. JSON has no infinity. */
const MIN = -9999;

/**
 * @param text Text of the token; '' while its character is incomplete.
 * @param logprobs Values of the likeliest tokens and of this token.
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

/** Entry for a token forced by the grammar, without a model's choice. */
export function forcedLogprob(vocabulary: Vocabulary, token: Token, text: string): TokenLogprob {
  return { token: text, logprob: 0, bytes: [...vocabulary.entry(token).bytes], top_logprobs: [] };
}

function alternative(vocabulary: Vocabulary, token: Token, logprob: number): Logprob {
  const { bytes } = vocabulary.entry(token);
  return { token: new TextDecoder().decode(bytes), logprob: Math.max(MIN, logprob), bytes: [...bytes] };
}
