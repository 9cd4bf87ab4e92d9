/** `Embedder` runs embedding requests in the engine process, one input per batch, because a vector cannot be pooled across batches. */
import type { LlamaEmbeddingContext, LlamaModel, Token } from 'node-llama-cpp';
import type { EmbeddingRequest, Ended, EngineFacts, EngineSettings, FromEngine } from '../messages.js';
import { gpuFailure } from './decoding/warm-up.js';
import { buildOf, isBytePair, loadWeights } from './load-weights.js';
import { type Tokenize, tokenizerOf } from './prompt/tokenizer.js';

export class Embedder {
  /** Running jobs. An abort cancels the job before its next input. */
  readonly #running = new Map<number, AbortController>();
  readonly #tokenize: Tokenize;

  /** Use {@link load}. */
  constructor(
    private readonly model: LlamaModel,
    private readonly context: LlamaEmbeddingContext,
    readonly facts: EngineFacts,
    private readonly send: (message: FromEngine) => void,
  ) {
    this.#tokenize = tokenizerOf((text, special) => model.tokenize(text, special), isBytePair(model), []);
  }

  /** Loads an embedding model. Throws an Error whose message is meant for the Mac's owner. */
  static async load(settings: EngineSettings, send: (message: FromEngine) => void): Promise<Embedder> {
    const { model, contextOptions } = await loadWeights(settings);
    const { contextSize, slots, gpu } = settings;
    const context = await model.createEmbeddingContext({ contextSize, batchSize: contextSize, ...contextOptions });
    if (gpu !== 'none') await warmUp(context);
    return new Embedder(model, context, { build: buildOf(model), slots, contextSize }, send);
  }

  /** Sends the vectors and the end of a job to the daemon. Failures are reported as the end; never rejects. */
  async run(job: number, request: EmbeddingRequest): Promise<void> {
    const cancellation = new AbortController();
    this.#running.set(job, cancellation);
    let ended: Ended;
    try {
      ended = await this.#embed(job, request, cancellation.signal);
    } catch (error) {
      ended = { job, kind: 'engine_failed', message: error instanceof Error ? error.message : 'unknown' };
    }
    this.#running.delete(job);
    this.send({ type: 'embedding_ended', ended });
  }

  /** Does nothing if the job has ended. */
  cancel(job: number): void {
    this.#running.get(job)?.abort();
  }

  async #embed(job: number, { inputs, dimensions }: EmbeddingRequest, signal: AbortSignal): Promise<Ended> {
    // node-llama-cpp needs one position more than the input has tokens.
    const limit = this.facts.contextSize - 1;
    const counted: { readonly tokens: Token[]; readonly count: number }[] = [];
    for (const input of inputs) {
      if (typeof input !== 'string' && !input.every((token) => this.#isToken(token)))
        return { job, kind: 'invalid_request', field: 'input' };
      const tokens = typeof input === 'string' ? this.#tokenize(input, false) : ([...input] as Token[]);
      // A copy, because the call inserts begin and end tokens into its argument.
      const count = this.context.calculateInputLength([...tokens]);
      if (count === 0) return { job, kind: 'invalid_request', field: 'input' };
      if (count > limit) return { job, kind: 'context_length_exceeded', limit, actual: count };
      counted.push({ tokens, count });
    }
    for (const { tokens, count } of counted) {
      if (signal.aborted) return { job, kind: 'cancelled' };
      const { vector } = await this.context.getEmbeddingFor(tokens);
      this.send({ type: 'embedded', job, vector: base64Floats(normalize(vector.slice(0, dimensions ?? vector.length))), tokens: count });
    }
    return { job, kind: 'finished', reason: 'stop', completionTokens: 0 };
  }

  #isToken(token: number): boolean {
    return Number.isInteger(token) && token >= 0 && token < this.model.fileInfo.metadata.tokenizer.ggml.tokens.length;
  }
}

/** Normalises to length 1, so a dot product equals the cosine. Throws for a zero or non-finite vector. */
function normalize(vector: readonly number[]): number[] {
  const length = Math.hypot(...vector);
  if (!Number.isFinite(length) || length === 0) throw new Error('the model produced an unusable vector');
  return vector.map((value) => value / length);
}

function base64Floats(vector: readonly number[]): string {
  const bytes = Buffer.alloc(4 * vector.length);
  for (const [index, value] of vector.entries()) bytes.writeFloatLE(value, 4 * index);
  return bytes.toString('base64');
}

/** Embeds a test text, so that a GPU compiles its kernels before the first request. Some kernels need more than a few tokens. */
async function warmUp(context: LlamaEmbeddingContext): Promise<void> {
  try {
    await context.getEmbeddingFor('a '.repeat(40));
  } catch (error) {
    throw gpuFailure(error);
  }
}
