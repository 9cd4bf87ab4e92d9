/**
 * Makes vectors with an embedding model. All inputs of a request are counted and checked before the first is read, and each
 * is read in one batch, because the pooling of a text that is split over batches would leave a part of it out.
 */
import type { LlamaEmbeddingContext, LlamaModel, Token } from 'node-llama-cpp';
import type { EmbeddingRequest, Ended, EngineFacts, EngineSettings, FromEngine } from '../messages.js';
import { buildOf, loadWeights } from './load-weights.js';
import { type Tokenize, tokenizerOf } from './prompt/tokenizer.js';

export class Embedder {
  readonly #cancelled = new Set<number>();
  readonly #tokenize: Tokenize;

  private constructor(
    private readonly model: LlamaModel,
    private readonly context: LlamaEmbeddingContext,
    readonly facts: EngineFacts,
    private readonly send: (message: FromEngine) => void,
  ) {
    this.#tokenize = tokenizerOf(model, []);
  }

  /** Throws an Error whose message is for the owner. */
  static async load(settings: EngineSettings, send: (message: FromEngine) => void): Promise<Embedder> {
    const { model, contextOptions } = await loadWeights(settings);
    const { contextSize, slots } = settings;
    const context = await model.createEmbeddingContext({ contextSize, batchSize: contextSize, ...contextOptions });
    return new Embedder(model, context, { build: buildOf(model), slots, contextSize }, send);
  }

  /** Never rejects: whatever happens is reported as the end of the job. */
  async run(job: number, request: EmbeddingRequest): Promise<void> {
    let ended: Ended;
    try {
      ended = await this.#embed(job, request);
    } catch (error) {
      ended = { job, kind: 'engine_failed', message: error instanceof Error ? error.message : 'unknown' };
    }
    this.#cancelled.delete(job);
    this.send({ type: 'embedding_ended', ended });
  }

  cancel(job: number): void {
    this.#cancelled.add(job);
  }

  async #embed(job: number, { inputs, dimensions }: EmbeddingRequest): Promise<Ended> {
    // The library wants one place more than the text has tokens.
    const limit = this.facts.contextSize - 1;
    const counted: { readonly tokens: Token[]; readonly count: number }[] = [];
    for (const input of inputs) {
      if (typeof input !== 'string' && !input.every((token) => this.#isToken(token)))
        return { job, kind: 'invalid_request', field: 'input' };
      const tokens = typeof input === 'string' ? this.#tokenize(input, false) : ([...input] as Token[]);
      // Given a copy, because it writes the tokens that begin and end a text into it.
      const count = this.context.calculateInputLength([...tokens]);
      if (count === 0) return { job, kind: 'invalid_request', field: 'input' };
      if (count > limit) return { job, kind: 'context_length_exceeded', limit, actual: count };
      counted.push({ tokens, count });
    }
    for (const { tokens, count } of counted) {
      if (this.#cancelled.has(job)) return { job, kind: 'cancelled' };
      const { vector } = await this.context.getEmbeddingFor(tokens);
      this.send({ type: 'embedded', job, vector: encoded(unit(vector.slice(0, dimensions ?? vector.length))), tokens: count });
    }
    return { job, kind: 'finished', reason: 'stop', completionTokens: 0 };
  }

  #isToken(token: number): boolean {
    return Number.isInteger(token) && token >= 0 && token < this.model.fileInfo.metadata.tokenizer.ggml.tokens.length;
  }
}

/** Of length 1, so that a dot product is the cosine. Throws when the model made no direction. */
function unit(vector: readonly number[]): number[] {
  const length = Math.hypot(...vector);
  if (!Number.isFinite(length) || length === 0) throw new Error('the model made no usable vector');
  return vector.map((value) => value / length);
}

function encoded(vector: readonly number[]): string {
  const bytes = Buffer.alloc(4 * vector.length);
  for (const [index, value] of vector.entries()) bytes.writeFloatLE(value, 4 * index);
  return bytes.toString('base64');
}
