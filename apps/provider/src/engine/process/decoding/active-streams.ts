/**
 * `ActiveStreams`: the streams that hold a sequence of the KV cache, and the computation of their batches.
 *
 * A stream first reads its prompt, then generates. Texts and ends are written to the outbox while the next batch is computed.
 * `Decoder` and `Prefill` fill the batches.
 */
import type { Token } from 'node-llama-cpp';
import type { NativeContext, NativeSamplers } from '../native.js';
import { RawLogprobs } from '../output/logprobs.js';
import type { TextStream } from '../output/text-stream.js';
import type { DraftPolicy } from './draft-policy.js';
import { PrefillQueue, type PrefillQueueOptions, type PromptReader } from './prefill-queue.js';
import type { PromptLookup } from './prompt-lookup.js';
import type { CachedSequence, SequencePool } from './sequence-pool.js';

export interface ActiveStream extends PromptReader {
  readonly stream: TextStream;
  readonly sequence: CachedSequence;
  /** The sampled token to decode next; null while the prompt is read. */
  next: Token | null;
  /** Drafts for speculative decoding; null until the stream first runs alone and may draft. */
  drafts: { readonly policy: DraftPolicy; readonly lookup: PromptLookup } | null;
}

export interface ActiveStreamsOptions extends PrefillQueueOptions {
  readonly context: NativeContext;
  readonly samplers: Pick<NativeSamplers, 'newSampler'>;
  readonly sequences: SequencePool;
}

export class ActiveStreams {
  readonly prompts: PrefillQueue<ActiveStream>;
  readonly #options: ActiveStreamsOptions;
  readonly #logprobs: RawLogprobs;
  #generating: ActiveStream[] = [];
  #toWrite: (() => void)[] = [];

  constructor(options: ActiveStreamsOptions) {
    this.#options = options;
    this.prompts = new PrefillQueue(options);
    this.#logprobs = new RawLogprobs(options.context, options.samplers);
  }

  get generating(): readonly ActiveStream[] {
    return this.#generating;
  }

  /** Queues the prompt of a stream. `sequence` already contains the cached part of the prompt. */
  add(stream: TextStream, sequence: CachedSequence): void {
    stream.begin(sequence.tokens.length);
    const dueAt = this.prompts.tokensRead + stream.options.prompt.length - sequence.tokens.length;
    this.prompts.add({ stream, sequence, dueAt, next: null, drafts: null });
  }

  /** Called just before the last slice of the prompt is computed, from which the first token is sampled. */
  startGenerating(active: ActiveStream): void {
    this.#generating.push(active);
  }

  removeCancelled(): void {
    for (const active of [...this.prompts.readers, ...this.#generating].filter(({ stream }) => stream.options.control.cancelled)) {
      this.finish(active);
      // Queued, so that the text of the stream's last token is written first.
      this.#toWrite.push(() => endCancelled(active.stream));
    }
  }

  /**
   * Decodes the batch, samples a token per stream and hands it over. A failed batch ends all active streams, a failed sampling only its
   * stream.
   */
  async compute(batch: readonly ActiveStream[], batchIndices: readonly number[], onDecoded: () => void): Promise<void> {
    const results = await this.decodeAndSample(batch, batchIndices);
    if (results === null) return;
    onDecoded();
    for (const [index, result] of results.entries()) {
      const active = batch[index] as ActiveStream;
      try {
        if (!(await this.accept(active, sampledToken(result), batchIndices[index] as number))) this.finish(active);
      } catch (error) {
        this.fail(active, error);
      }
    }
  }

  /** Decodes the batch while earlier text is written, and samples a token per stream. If the batch fails, ends all streams; null. */
  async decodeAndSample(batch: readonly ActiveStream[], batchIndices: ArrayLike<number>): Promise<PromiseSettledResult<number>[] | null> {
    const { context } = this.#options;
    const decoded = context.decodeBatch();
    const sampled = batch.map(({ stream }, index) => context.sampleToken(batchIndices[index] as number, stream.options.sampler));
    const settled = Promise.allSettled(sampled);
    this.writeAll();
    try {
      await decoded;
    } catch (error) {
      await settled;
      this.#failAll(error);
      return null;
    }
    return await settled;
  }

  /** Hands a sampled token to its stream. Resolves to whether the stream continues. */
  async accept(active: ActiveStream, token: number, batchIndex: number): Promise<boolean> {
    const { stream } = active;
    // `removeCancelled` removes the stream before the next round.
    if (stream.options.control.cancelled) return true;
    const needsLogprobs = stream.options.logprobs !== null && token !== -1;
    const { more, write } = stream.take(token, needsLogprobs ? await this.#logprobs.of(batchIndex, token as Token) : null);
    this.#toWrite.push(write);
    if (more) active.next = token as Token;
    return more;
  }

  /** Removes a stream. Its sequence stays cached for later requests. */
  finish(active: ActiveStream): void {
    this.#remove(active);
    this.#options.sequences.release(active.sequence);
  }

  /** Removes a stream and ends it with `engine_failed`. The contents of its sequence are unknown. */
  fail(active: ActiveStream, error: unknown): void {
    this.#remove(active);
    this.#options.sequences.releaseWiped(active.sequence);
    const { stream } = active;
    const { job } = stream.options.control;
    this.#toWrite.push(() => stream.end({ job, kind: 'engine_failed', message: error instanceof Error ? error.message : 'unknown' }));
  }

  /** Writes the texts and ends of the last batch to the outbox. */
  writeAll(): void {
    const writes = this.#toWrite;
    this.#toWrite = [];
    for (const write of writes) write();
  }

  /** For a failed batch, after which the contents of all sequences are unknown. */
  #failAll(error: unknown): void {
    for (const active of [...this.prompts.readers, ...this.#generating]) this.fail(active, error);
  }

  #remove(active: ActiveStream): void {
    this.prompts.remove(active);
    this.#generating = this.#generating.filter((each) => each !== active);
  }
}

/** The sampled token. Throws the error of a failed sampling. */
export function sampledToken(result: PromiseSettledResult<number>): number {
  if (result.status === 'rejected') throw result.reason;
  return result.value;
}

export function endCancelled(stream: TextStream): void {
  stream.end({ job: stream.options.control.job, kind: 'cancelled' });
}
