/**
 * `Decoder`: the continuous batching loop of a llama.cpp context. A round decodes one token per stream, then reads prompt slices.
 *
 * Streams join and leave between batches. Each batch takes one trip to the compute thread. A stream that runs alone may also use
 * speculative decoding (`PromptLookup`). Repeatable streams, whose requests have a seed, only run in batches with bit-exact logits.
 */
import type { Token } from 'node-llama-cpp';
import { type NativeContext, type NativeSamplers, nativeTokens } from '../native.js';
import type { Outbox } from '../outbox.js';
import { RawLogprobs } from '../output/logprobs.js';
import type { TextStream } from '../output/text-stream.js';
import { DraftCost, DraftPolicy } from './draft-policy.js';
import type { MediaChunk } from './media-span.js';
import { nextChunk, PrefillQueue, type PromptReader } from './prefill-queue.js';
import { PromptLookup } from './prompt-lookup.js';
import { batchRows, type Repeatability } from './repeatability.js';
import { appendTokens, type CachedSequence, nextPosition, type SequencePool } from './sequence-pool.js';

/** Idle sequences are cleared after this time, in milliseconds. */
const IDLE_SEQUENCE_MS = 10 * 60_000;
const SWEEP_MS = 60_000;
/** Interval of progress reports while an image is read, for at most the maximum. Coordinators abort jobs without progress. */
const IMAGE_PROGRESS_MS = 10_000;
const MAX_IMAGE_PROGRESS_MS = 300_000;

const ONE_ROW = Uint32Array.of(0);
const TWO_ROWS = Uint32Array.of(0, 1);
const NO_ROWS = new Uint32Array(0);

interface DecoderOptions {
  readonly context: NativeContext;
  readonly samplers: Pick<NativeSamplers, 'newSampler'>;
  readonly sequences: SequencePool;
  readonly repeatability: Repeatability;
  /** Maximum tokens of one batch. */
  readonly batchTokens: number;
  readonly usesGpu: boolean;
  /** Whether drafts are allowed and rejected tokens can be dropped from the cache. */
  readonly canDraft: boolean;
  /** Clock in milliseconds, to compare the cost of drafts with the cost of single tokens. */
  readonly computeClock: () => number;
  readonly outbox: Outbox;
}

interface Running extends PromptReader {
  readonly stream: TextStream;
  readonly sequence: CachedSequence;
  /** The token to decode next; null while the prompt is read. */
  next: Token | null;
  /** Created when the stream first runs alone. */
  drafts: { readonly policy: DraftPolicy; readonly lookup: PromptLookup } | null;
}

export class Decoder {
  readonly #waiting: TextStream[] = [];
  /** Streams whose prompts are being read. */
  readonly #prompts: PrefillQueue<Running>;
  /** Streams that generate. */
  #streams: Running[] = [];
  readonly #logprobs: RawLogprobs;
  /** Texts and ends of streams, written to the outbox while the next batch is computed. */
  #toWrite: (() => void)[] = [];
  #isRunning = false;
  #wake: (() => void) | null = null;
  #sweep: NodeJS.Timeout | null = null;
  readonly #draftCost = new DraftCost();

  constructor(private readonly options: DecoderOptions) {
    this.#prompts = new PrefillQueue(options);
    this.#logprobs = new RawLogprobs(options.context, options.samplers);
  }

  /** Queues a stream until a sequence is free, in order of arrival, then runs the stream. */
  add(stream: TextStream): void {
    stream.options.control.onChange = () => this.#notify();
    this.#waiting.push(stream);
    this.#notify();
    if (this.#isRunning) return;
    this.#isRunning = true;
    void this.#run();
  }

  #notify(): void {
    this.#wake?.();
    this.#wake = null;
  }

  async #run(): Promise<void> {
    for (;;) {
      this.#retire();
      this.#admit();
      const ready = this.#streams.filter(({ stream }) => !stream.options.control.paused);
      if (ready.length > 0 || !this.#prompts.isEmpty) {
        const full = this.options.outbox.untilReady();
        if (full !== null) {
          this.#writeAll();
          await full;
        }
        if (ready.length === 0) {
          this.#prompts.budget.clear();
          await this.#readSlice(null);
          continue;
        }
        const begin = performance.now();
        await this.#decodeAll(ready);
        this.#prompts.budget.addDecode(performance.now() - begin);
        await this.#readSlices();
        continue;
      }
      this.#writeAll();
      if (this.#streams.length + this.#waiting.length === 0) break;
      // All streams are paused. Only a new stream or a message from the daemon can change the state.
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    this.#isRunning = false;
    this.#sweep ??= setTimeout(this.#sweepIdle, SWEEP_MS).unref();
  }

  #sweepIdle = (): void => {
    this.#sweep = null;
    if (this.#isRunning || this.options.sequences.wipeIdle(IDLE_SEQUENCE_MS)) this.#sweep = setTimeout(this.#sweepIdle, SWEEP_MS).unref();
  };

  /** Removes cancelled streams from all queues. */
  #retire(): void {
    const isCancelled = ({ options }: TextStream) => options.control.cancelled;
    for (const stream of this.#waiting.filter(isCancelled)) {
      this.#waiting.splice(this.#waiting.indexOf(stream), 1);
      endCancelled(stream);
    }
    for (const running of [...this.#prompts.readers, ...this.#streams].filter(({ stream }) => isCancelled(stream))) {
      this.#remove(running);
      this.options.sequences.release(running.sequence);
      // Queued behind the text of the stream's last token.
      this.#toWrite.push(() => endCancelled(running.stream));
    }
  }

  #admit(): void {
    while (this.#waiting.length > 0 && this.options.sequences.hasFree) {
      const stream = this.#waiting.shift() as TextStream;
      const sequence = this.options.sequences.take(stream.options) as CachedSequence;
      stream.begin(sequence.tokens.length);
      const dueAt = this.#prompts.tokensRead + stream.options.prompt.length - sequence.tokens.length;
      this.#prompts.add({ stream, sequence, dueAt, next: null, drafts: null });
    }
  }

  /** Decodes one token per stream in a shared batch. Repeatable streams get batches of their own if shared ones are not bit-exact. */
  async #decodeAll(ready: readonly Running[]): Promise<void> {
    const [only, ...others] = ready as readonly [Running, ...Running[]];
    if (others.length === 0 && this.#prompts.isEmpty) return this.#decodeAlone(only);
    const alone = this.options.repeatability.minRows === null ? ready.filter(({ stream }) => stream.options.repeatable) : [];
    const together = alone.length === 0 ? ready : ready.filter((each) => !alone.includes(each));
    if (together.length > 0) await this.#decode(together);
    for (const each of alone) await this.#decode([each]);
  }

  async #decode(batch: readonly Running[]): Promise<void> {
    const { context, repeatability } = this.options;
    // llama.cpp decodes neighbouring sequences together only in the order of their ids.
    const ordered = [...batch].sort((a, b) => a.sequence.id - b.sequence.id);
    const min = batch.some(({ stream }) => stream.options.repeatable) ? (repeatability.minRows ?? 1) : 1;
    const rows = batchRows(
      ordered.map(({ sequence }) => sequence.id),
      min,
    );
    context.initBatch(rows.reduce((sum, own) => sum + own, 0));
    const batchIndices = ordered.map(({ sequence, next }, index) => {
      const own = rows[index] as number;
      // Requests logits for the duplicate row too: llama.cpp skips rows without logits in the last layer.
      return context.addToBatch(
        sequence.id,
        nextPosition(sequence),
        new Uint32Array(own).fill(next as Token),
        own === 1 ? ONE_ROW : TWO_ROWS,
      )[0] as number;
    });
    await this.#compute(ordered, batchIndices, () => {
      for (const [index, { sequence, next }] of ordered.entries()) {
        // `false`: kernels round single tokens and prompt slices differently, so generated tokens are not a repeatable prefix.
        appendTokens(sequence, [next as Token], false);
        if ((rows[index] as number) > 1) context.removeTokenCellsFromSequence(sequence.id, nextPosition(sequence), -1);
      }
    });
  }

  /** Decodes the only running stream, with a draft if a draft is likely to save time. */
  async #decodeAlone(running: Running): Promise<void> {
    const draft = this.#draft(running);
    if (draft.length > 0) return this.#verify(running, draft);
    const { canDraft, computeClock } = this.options;
    if (!canDraft || !this.#draftCost.shouldTimeRound()) return this.#decode([running]);
    const begin = computeClock();
    await this.#decode([running]);
    this.#draftCost.addRound(computeClock() - begin);
  }

  #draft(running: Running): Token[] {
    const { stream, sequence, next } = running;
    const { canDraft, repeatability } = this.options;
    if (!canDraft || (stream.options.repeatable && !repeatability.exactDrafts)) return [];
    if (running.drafts === null) {
      const policy = new DraftPolicy(this.#draftCost);
      running.drafts = { policy, lookup: new PromptLookup(policy) };
    }
    // The last token of the limit is sampled, but never decoded.
    return running.drafts.lookup.draft(sequence.tokens, next as Token, stream.remaining - 1);
  }

  /** Decodes the next token and a draft in one batch. Samples in order up to the first token that differs from the draft. */
  async #verify(running: Running, draft: readonly Token[]): Promise<void> {
    const { context, computeClock } = this.options;
    const { sequence, stream, next } = running;
    const rows = nativeTokens([next as Token, ...draft]);
    const begin = computeClock();
    context.initBatch(rows.length);
    const batchIndices = context.addToBatch(sequence.id, nextPosition(sequence), rows, Uint32Array.from(rows.keys()));
    const results = await this.#decodeAndSample([running], batchIndices);
    if (results === null) return;
    appendTokens(sequence, [next as Token], false);
    let accepted = 0;
    let more = true;
    try {
      let token = sampledToken(results[0] as PromiseSettledResult<number>);
      for (;;) {
        more = await this.#take(running, token, batchIndices[accepted] as number);
        if (!more || token !== draft[accepted]) break;
        appendTokens(sequence, [token as Token], false);
        accepted += 1;
        token = await context.sampleToken(batchIndices[accepted] as number, stream.options.sampler);
      }
    } catch (error) {
      this.#fail(running, error);
      return;
    }
    if (accepted < draft.length) context.removeTokenCellsFromSequence(sequence.id, nextPosition(sequence), -1);
    running.drafts?.policy.verified(draft.length, accepted, computeClock() - begin);
    if (!more) this.#finish(running);
  }

  /** Reads prompts for the time of a round in which other streams generate. */
  async #readSlices(): Promise<void> {
    const { budget } = this.#prompts;
    let left = budget.isExhausted ? 0 : budget.roundMs;
    while (left > 0) {
      const took = await this.#readSlice(left);
      if (took === null) break;
      left -= took;
      if (left < took) break;
    }
    budget.endRound();
  }

  /**
   * Reads the next slice of a prompt. Resolves to the time taken in milliseconds, or to null if no prompt could be read.
   *
   * @param limitMs Time for the slice while other streams generate. Null if none does.
   */
  async #readSlice(limitMs: number | null): Promise<number | null> {
    const running = this.#prompts.take(limitMs !== null);
    if (running === undefined) return null;
    const { budget, slices } = this.#prompts;
    const { context, repeatability, outbox } = this.options;
    const { sequence, stream } = running;
    const { prompt, repeatable } = stream.options;
    const at = sequence.tokens.length;
    const begin = performance.now();
    const chunk = nextChunk(running);
    if (chunk !== undefined) {
      await this.#readMedia(running, chunk);
      const took = performance.now() - begin;
      if (limitMs !== null) budget.overdraw(took);
      outbox.worked();
      return took;
    }
    const part = prompt.slice(at, at + this.#prompts.sliceTokens(running, limitMs));
    const isLast = at + part.length === prompt.length;
    const padding = repeatable ? Math.max(0, (repeatability.minRows ?? 1) - part.length) : 0;
    const rows = nativeTokens([...part, ...part.slice(0, padding)]);
    context.initBatch(rows.length);
    const batchIndices = context.addToBatch(sequence.id, nextPosition(sequence), rows, isLast ? Uint32Array.of(part.length - 1) : NO_ROWS);
    if (isLast) this.#streams.push(running);
    else this.#prompts.add(running);
    await this.#compute(isLast ? [running] : [], [...batchIndices], () => {
      appendTokens(sequence, part, this.#prompts.isBitExact(at, part.length));
      this.#prompts.tokensRead += part.length;
      if (padding > 0) context.removeTokenCellsFromSequence(sequence.id, nextPosition(sequence), -1);
      if (isLast) stream.options.onPromptRead?.();
    });
    const took = performance.now() - begin;
    slices.add(at, rows.length, took);
    if (limitMs !== null && repeatable) budget.overdraw(took);
    else if (limitMs !== null) budget.charge(took);
    outbox.worked();
    return took;
  }

  /** Encodes and decodes an image. A failure ends only this stream. */
  async #readMedia(running: Running, chunk: MediaChunk): Promise<void> {
    const { sequence, stream } = running;
    this.#prompts.add(running);
    this.#writeAll();
    const progress = setInterval(() => this.options.outbox.worked(), IMAGE_PROGRESS_MS);
    const limit = setTimeout(() => clearInterval(progress), MAX_IMAGE_PROGRESS_MS);
    try {
      await chunk.read(sequence.id, nextPosition(sequence));
    } catch (error) {
      this.#fail(running, error);
      return;
    } finally {
      clearInterval(progress);
      clearTimeout(limit);
    }
    const { start, tokens, positions } = chunk;
    sequence.media.push({ start, tokens, positions });
    appendTokens(sequence, stream.options.prompt.slice(start, start + tokens), false);
    this.#prompts.tokensRead += tokens;
  }

  /** Decodes the batch and samples. A failed batch ends all admitted streams, a failed sampling only its stream. */
  async #compute(batch: readonly Running[], batchIndices: readonly number[], onDecoded: () => void): Promise<void> {
    const results = await this.#decodeAndSample(batch, batchIndices);
    if (results === null) return;
    onDecoded();
    for (const [index, result] of results.entries()) {
      const running = batch[index] as Running;
      try {
        if (!(await this.#take(running, sampledToken(result), batchIndices[index] as number))) this.#finish(running);
      } catch (error) {
        this.#fail(running, error);
      }
    }
  }

  /** Decodes the batch while earlier text is written, and samples a token per stream. If the batch fails, ends all and returns null. */
  async #decodeAndSample(batch: readonly Running[], batchIndices: ArrayLike<number>): Promise<PromiseSettledResult<number>[] | null> {
    const { context } = this.options;
    const decoded = context.decodeBatch();
    const sampled = batch.map(({ stream }, index) => context.sampleToken(batchIndices[index] as number, stream.options.sampler));
    const settled = Promise.allSettled(sampled);
    this.#writeAll();
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
  async #take(running: Running, token: number, batchIndex: number): Promise<boolean> {
    const { stream } = running;
    // A cancelled stream is removed before the next batch.
    if (stream.options.control.cancelled) return true;
    const needsLogprobs = stream.options.logprobs !== null && token !== -1;
    const { more, write } = stream.take(token, needsLogprobs ? await this.#logprobs.of(batchIndex, token as Token) : null);
    this.#toWrite.push(write);
    if (more) running.next = token as Token;
    return more;
  }

  #finish(running: Running): void {
    this.#remove(running);
    this.options.sequences.release(running.sequence);
  }

  /** After a failed batch the contents of all sequences are unknown. */
  #failAll(error: unknown): void {
    for (const running of [...this.#prompts.readers, ...this.#streams]) this.#fail(running, error);
  }

  #fail(running: Running, error: unknown): void {
    this.#remove(running);
    this.options.sequences.releaseUnknown(running.sequence);
    const { job } = running.stream.options.control;
    this.#toWrite.push(() =>
      running.stream.end({ job, kind: 'engine_failed', message: error instanceof Error ? error.message : 'unknown' }),
    );
  }

  #remove(running: Running): void {
    this.#prompts.remove(running);
    this.#streams = this.#streams.filter((each) => each !== running);
  }

  #writeAll(): void {
    const writes = this.#toWrite;
    this.#toWrite = [];
    for (const write of writes) write();
  }
}

/** Throws the error of a failed sampling. */
function sampledToken(result: PromiseSettledResult<number>): number {
  if (result.status === 'rejected') throw result.reason;
  return result.value;
}

function endCancelled(stream: TextStream): void {
  stream.end({ job: stream.options.control.job, kind: 'cancelled' });
}
