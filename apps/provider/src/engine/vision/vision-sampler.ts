/** `VisionSampler`: the sampler of one generation in the vision engine: llama.cpp's samplers in node-llama-cpp's order, and a grammar. */
import { type Grammar, gbnf } from '@inference/json-schema-grammar/grammar';
import { GrammarError } from '../process/decoding/sampling.js';
import type { NativeSampler, NativeSamplers, SamplerConfig } from '../process/native.js';
import { type LlamaLibrary, nativeMemory, nativeView, type Pointer } from './llama-library.js';

/** Minimum candidates that `top_p` and `min_p` leave. */
const MIN_KEEP = 1;

export class VisionSampler implements NativeSampler {
  #chain: Pointer | null;
  readonly #grammar: Pointer | null;

  constructor(
    private readonly library: LlamaLibrary,
    private readonly vocabularySize: number,
    private readonly candidates: Candidates,
    config: SamplerConfig,
  ) {
    this.#grammar = (config.grammarEvaluationState as Pointer | undefined) ?? null;
    this.#chain = this.#newChain(config);
  }

  /** For the interface. Does nothing: the constructor has applied the configuration. */
  applyConfig(): void {}

  /** Draws a token at a batch index, and stores it for penalties and grammar. Returns -1 if nothing could be sampled. */
  sample(context: Pointer, batchIndex: number, logits: () => Float32Array): number {
    const chain = this.#chain;
    if (chain === null) throw new Error('the sampler is disposed');
    if (this.#grammar === null) return this.library.llama_sampler_sample(chain, context, batchIndex) as number;
    return this.#sampleInGrammar(chain, this.#grammar, logits());
  }

  dispose(): void {
    if (this.#chain === null) return;
    this.library.llama_sampler_free(this.#chain);
    if (this.#grammar !== null) this.library.llama_sampler_free(this.#grammar);
    this.#chain = null;
  }

  /** Applies the grammar to all candidates only if it rejects the token drawn without it: checking a whole vocabulary is slow. */
  #sampleInGrammar(chain: Pointer, grammar: Pointer, logits: Float32Array): number {
    const { library, candidates } = this;
    candidates.fill(logits);
    library.llama_sampler_apply(chain, candidates.pointer);
    let token = candidates.drawnToken();
    if (token === null || !this.#permits(grammar, token)) {
      candidates.fill(logits);
      library.llama_sampler_apply(grammar, candidates.pointer);
      library.llama_sampler_apply(chain, candidates.pointer);
      token = candidates.drawnToken();
      // llama.cpp would abort the process on accepting a token that the grammar rejects.
      if (token === null || !this.#permits(grammar, token)) return -1;
    }
    library.llama_sampler_accept(chain, token);
    library.llama_sampler_accept(grammar, token);
    return token;
  }

  #permits(grammar: Pointer, token: number): boolean {
    this.candidates.fillWith(token);
    this.library.llama_sampler_apply(grammar, this.candidates.pointer);
    return this.candidates.hasFirst();
  }

  #newChain(config: SamplerConfig): Pointer {
    const { library } = this;
    const chain = library.llama_sampler_chain_init({ no_perf: true }) as Pointer;
    const add = (sampler: unknown): void => void library.llama_sampler_chain_add(chain, sampler);
    const { tokenBiasKeys = [], tokenBiasValues = [], repeatPenaltyMaxTokens } = config;
    if (tokenBiasKeys.length > 0) {
      const biases = [...tokenBiasKeys].map((token, index) => ({ token, bias: tokenBiasValues[index] }));
      add(library.llama_sampler_init_logit_bias(this.vocabularySize, biases.length, biases));
    }
    if (repeatPenaltyMaxTokens !== undefined) {
      const { repeatPenalty = 1, repeatPenaltyFrequencyPenalty = 0, repeatPenaltyPresencePenalty = 0 } = config;
      add(
        library.llama_sampler_init_penalties(
          repeatPenaltyMaxTokens,
          repeatPenalty,
          repeatPenaltyFrequencyPenalty,
          repeatPenaltyPresencePenalty,
        ),
      );
    }
    if (config.temperature <= 0) {
      add(library.llama_sampler_init_greedy());
      return chain;
    }
    const { topK, topP, minP, seed = 0 } = config;
    if (topK !== undefined) add(library.llama_sampler_init_top_k(topK <= 0 ? this.vocabularySize : Math.min(topK, this.vocabularySize)));
    if (topP !== undefined && topP < 1) add(library.llama_sampler_init_top_p(topP, MIN_KEEP));
    if (minP !== undefined && minP > 0) add(library.llama_sampler_init_min_p(minP, MIN_KEEP));
    add(library.llama_sampler_init_temp(config.temperature));
    add(library.llama_sampler_init_dist(seed));
    return chain;
  }
}

/** Creates the samplers of one model. They share one buffer for candidates, because samplings never overlap. */
export function visionSamplers(library: LlamaLibrary, vocabulary: Pointer, vocabularySize: number): NativeSamplers {
  const candidates = new Candidates(vocabularySize);
  return {
    newSampler: (config) => new VisionSampler(library, vocabularySize, candidates, config),
    grammarState: async (grammar: Grammar) => {
      const state = library.llama_sampler_init_grammar(vocabulary, gbnf(grammar), 'root') as Pointer | null;
      if (state === null) throw new GrammarError();
      return state;
    },
  };
}

/** 32-bit words of a `llama_token_data`: id, logit, probability. */
const ENTRY_WORDS = 3;
/** Four 64-bit members: pointer to the entries, their count, index of the drawn entry, whether they are sorted. */
const HEADER_BYTES = 32;

/** Tokens to choose from: `llama_token_data_array` in native memory. */
class Candidates {
  readonly pointer: Pointer;
  readonly #header: BigInt64Array;
  readonly #data: Pointer;
  readonly #ids: Int32Array;
  readonly #logits: Float32Array;

  constructor(private readonly vocabularySize: number) {
    const header = nativeMemory(HEADER_BYTES);
    const data = nativeMemory(4 * ENTRY_WORDS * vocabularySize);
    this.pointer = header.pointer;
    this.#header = new BigInt64Array(header.buffer);
    this.#data = data.pointer;
    this.#ids = new Int32Array(data.buffer);
    this.#logits = new Float32Array(data.buffer);
  }

  /** Makes all tokens candidates. */
  fill(logits: Float32Array): void {
    for (let token = 0; token < this.vocabularySize; token++) {
      this.#ids[ENTRY_WORDS * token] = token;
      this.#logits[ENTRY_WORDS * token + 1] = logits[token] as number;
      this.#logits[ENTRY_WORDS * token + 2] = 0;
    }
    this.#reset(this.vocabularySize);
  }

  /** Makes one token the only candidate, with the logit 1. */
  fillWith(token: number): void {
    this.#ids[0] = token;
    this.#logits[1] = 1;
    this.#logits[2] = 0;
    this.#reset(1);
  }

  drawnToken(): number | null {
    const [data = 0n, size = 0n, index = -1n] = this.#header;
    if (index < 0n || index >= size) return null;
    // Reads through the header, because samplers may move the entries.
    return new Int32Array(nativeView(data + 4n * BigInt(ENTRY_WORDS) * index, 4))[0] as number;
  }

  /** Whether the first candidate has not been excluded. */
  hasFirst(): boolean {
    return this.#header[1] !== 0n && this.#logits[1] !== Number.NEGATIVE_INFINITY;
  }

  #reset(size: number): void {
    this.#header[0] = this.#data;
    this.#header[1] = BigInt(size);
    this.#header[2] = -1n;
    this.#header[3] = 0n;
  }
}
