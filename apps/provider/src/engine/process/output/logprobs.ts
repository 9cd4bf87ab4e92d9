/** Log probabilities of tokens for API responses: those that the model gave before temperature, penalties and grammar. */
import type { Logprob, TokenLogprob } from '@inference/formats';
import type { Token } from 'node-llama-cpp';
import type { NativeContext, NativeSampler, NativeSamplers, Pairs } from '../native.js';
import type { Vocabulary } from './token-text.js';

const MAX_ALTERNATIVES = 20;

/** Reads log probabilities of a decoded batch, with two samplers of its own that leave the logits unchanged. */
export class RawLogprobs {
  /** Keeps all candidates and chooses the likeliest. */
  readonly #greedy: NativeSampler;
  /** Keeps the likeliest candidates. */
  readonly #top: NativeSampler;

  constructor(
    private readonly context: NativeContext,
    samplers: Pick<NativeSamplers, 'newSampler'>,
  ) {
    this.#greedy = samplers.newSampler({ temperature: 0 });
    this.#top = samplers.newSampler({ temperature: 1, topK: MAX_ALTERNATIVES, seed: 1 });
  }

  /** Log probabilities of the likeliest tokens and of `token`, at the batch index from which it was sampled. */
  async of(batchIndex: number, token: Token): Promise<ReadonlyMap<Token, number>> {
    // The first call gives the logits of `token` and of the likeliest token, and the weight of all; the second gives the logits of the
    // likeliest tokens.
    const [all, best] = await Promise.all([
      this.context.sampleToken(batchIndex, this.#greedy, false, false, [[token], false, false, true, 0], true),
      this.context.sampleToken(batchIndex, this.#top, false, false, [[], false, false, false, MAX_ALTERNATIVES], false),
    ]);
    const [, , , logits = [], weight = 0] = all;
    const known = pairsOf(logits);
    const candidates = new Map([...pairsOf(best[3] ?? []), ...known.filter(([each]) => each === token)]);
    // The maximum is the logit of the likeliest token, to which `weight` is relative.
    const total = Math.max(...known.map(([, logit]) => logit)) + Math.log(weight);
    return new Map([...candidates].map(([each, logit]) => [each, logit - total]));
  }
}

function pairsOf(flat: Pairs): [Token, number][] {
  const pairs: [Token, number][] = [];
  for (let i = 0; i + 1 < flat.length; i += 2) pairs.push([flat[i] as Token, flat[i + 1] as number]);
  return pairs;
}

/** Log probability of an impossible token, because JSON has no infinity. */
const MIN_LOGPROB = -9999;

/**
 * Entry of the API response for a sampled token.
 *
 * @param text Text of the token; '' while its character is incomplete.
 * @param logprobs From {@link RawLogprobs}.
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
    logprob: Math.max(MIN_LOGPROB, logprobs.get(token) ?? MIN_LOGPROB),
    bytes: [...vocabulary.entry(token).bytes],
    top_logprobs: best.map(([each, logprob]) => alternative(vocabulary, each, logprob)),
  };
}

/** Entry for a token that completes a grammar and was not sampled. */
export function forcedLogprob(vocabulary: Vocabulary, token: Token, text: string): TokenLogprob {
  return { token: text, logprob: 0, bytes: [...vocabulary.entry(token).bytes], top_logprobs: [] };
}

function alternative(vocabulary: Vocabulary, token: Token, logprob: number): Logprob {
  const { bytes } = vocabulary.entry(token);
  return { token: new TextDecoder().decode(bytes), logprob: Math.max(MIN_LOGPROB, logprob), bytes: [...bytes] };
}
