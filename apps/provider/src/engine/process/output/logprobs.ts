/**
 * Log probabilities as the model has them, before temperature, penalties and grammars. The library reports what is left
 * after those, so the logits are asked for once more, by samplers that leave them as they are.
 */

import type { Logprob, TokenLogprob } from '@inference/formats';
import type { LlamaModel, Token } from 'node-llama-cpp';
import { type NativeContext, type NativeSampler, newSampler, type Pairs } from '../native.js';
import type { Vocabulary } from './token-text.js';

/** Tokens reported beside the chosen one. */
const TOP = 20;

export class RawLogprobs {
  /** Leaves all candidates as they are, and chooses the most likely. */
  readonly #greedy: NativeSampler;
  /** Sorts out the most likely ones. */
  readonly #top: NativeSampler;

  constructor(
    private readonly context: NativeContext,
    model: LlamaModel,
  ) {
    this.#greedy = newSampler(model, { temperature: 0 });
    this.#top = newSampler(model, { temperature: 1, topK: TOP, seed: 1 });
  }

  /** Of the most likely tokens and of this one, after the batch that it was sampled from. */
  async of(place: number, token: Token): Promise<ReadonlyMap<Token, number>> {
    // Together, as the single thread takes them one after the other.
    const [all, best] = await Promise.all([
      this.context.sampleToken(place, this.#greedy, false, false, [[token], false, false, true, 0], true),
      this.context.sampleToken(place, this.#top, false, false, [[], false, false, false, TOP], false),
    ]);
    const [, , , logits = [], weight = 0] = all;
    const known = pairsOf(logits);
    const candidates = new Map([...pairsOf(best[3] ?? []), ...known.filter(([each]) => each === token)]);
    // The most likely token is among them, as the greedy sampler chose it.
    const total = Math.max(...known.map(([, logit]) => logit)) + Math.log(weight);
    return new Map([...candidates].map(([each, logit]) => [each, logit - total]));
  }
}

function pairsOf(flat: Pairs): [Token, number][] {
  const pairs: [Token, number][] = [];
  for (let i = 0; i + 1 < flat.length; i += 2) pairs.push([flat[i] as Token, flat[i + 1] as number]);
  return pairs;
}

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
