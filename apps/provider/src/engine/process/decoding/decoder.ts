/**
 * `Decoder`: the continuous batching loop of a llama.cpp context. A round decodes a token per stream, then reads parts of prompts.
 *
 * Streams join and leave between batches. A stream that runs alone may also use speculative decoding: a batch checks several guessed
 * tokens (`PromptLookup`). Repeatable streams, whose requests have a seed, only run in batches that `findRepeatability` found bit-exact.
 */
import type { Token } from 'node-llama-cpp';
import { nativeTokens } from '../native.js';
import type { Outbox } from '../outbox.js';
import type { TextStream } from '../output/text-stream.js';
import { type ActiveStream, ActiveStreams, type ActiveStreamsOptions, endCancelled, sampledToken } from './active-streams.js';
import { DraftCost, DraftPolicy } from './draft-policy.js';
import { Prefill } from './prefill.js';
import { PromptLookup } from './prompt-lookup.js';
import { batchRows } from './repeatability.js';
import { appendTokens, type CachedSequence, nextPosition } from './sequence-pool.js';

/** Unused sequences are cleared after this time, in milliseconds, checked at the interval below. */
const IDLE_SEQUENCE_MS = 10 * 60_000;
const SWEEP_EVERY_MS = 60_000;

const ONE_ROW = Uint32Array.of(0);
const TWO_ROWS = Uint32Array.of(0, 1);

interface DecoderOptions extends ActiveStreamsOptions {
  /** Whether speculative decoding is enabled, and rejected tokens can be dropped from the cache. */
  readonly canDraft: boolean;
  /** Clock in milliseconds that measures the cost of batches with and without drafted tokens. */
  readonly computeClock: () => number;
  readonly outbox: Outbox;
}

export class Decoder {
  /** Streams without a sequence, in order of arrival. */
  readonly #waiting: TextStream[] = [];
  readonly #streams: ActiveStreams;
  readonly #prefill: Prefill;
  readonly #draftCost = new DraftCost();
  #isRunning = false;
  #wake: (() => void) | null = null;
  #sweepTimer: NodeJS.Timeout | null = null;

  constructor(private readonly options: DecoderOptions) {
    this.#streams = new ActiveStreams(options);
    this.#prefill = new Prefill(options, this.#streams);
  }

  /** Queues a stream. The stream runs once a sequence is free. */
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
      this.#removeCancelled();
      this.#admitWaiting();
      const ready = this.#streams.generating.filter(({ stream }) => !stream.options.control.paused);
      if (ready.length > 0 || !this.#streams.prompts.isEmpty) {
        await this.#computeRound(ready);
        continue;
      }
      this.#streams.writeAll();
      if (this.#streams.generating.length + this.#waiting.length === 0) break;
      // All streams with a sequence are paused. Only a new stream, a resume or a cancel changes that.
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    this.#isRunning = false;
    this.#sweepTimer ??= setTimeout(this.#sweepIdle, SWEEP_EVERY_MS).unref();
  }

  #sweepIdle = (): void => {
    this.#sweepTimer = null;
    if (this.#isRunning || this.options.sequences.wipeIdle(IDLE_SEQUENCE_MS)) {
      this.#sweepTimer = setTimeout(this.#sweepIdle, SWEEP_EVERY_MS).unref();
    }
  };

  #removeCancelled(): void {
    for (const stream of this.#waiting.filter(({ options }) => options.control.cancelled)) {
      this.#waiting.splice(this.#waiting.indexOf(stream), 1);
      endCancelled(stream);
    }
    this.#streams.removeCancelled();
  }

  #admitWaiting(): void {
    while (this.#waiting.length > 0 && this.options.sequences.hasFree) {
      const stream = this.#waiting.shift() as TextStream;
      this.#streams.add(stream, this.options.sequences.take(stream.options) as CachedSequence);
    }
  }

  /** Decodes a token for each of the `ready` streams, then reads prompts. */
  async #computeRound(ready: readonly ActiveStream[]): Promise<void> {
    const outboxReady = this.options.outbox.untilReady();
    if (outboxReady !== null) {
      this.#streams.writeAll();
      await outboxReady;
    }
    if (ready.length === 0) return this.#prefill.readAlone();
    const begin = performance.now();
    await this.#decodeAll(ready);
    await this.#prefill.readBesideDecoding(performance.now() - begin);
  }

  /** Decodes one token per stream in a shared batch. Repeatable streams get batches of their own if shared ones are not bit-exact. */
  async #decodeAll(ready: readonly ActiveStream[]): Promise<void> {
    const [only, ...others] = ready as readonly [ActiveStream, ...ActiveStream[]];
    if (others.length === 0 && this.#streams.prompts.isEmpty) return this.#decodeAlone(only);
    const alone = this.options.repeatability.minRows === null ? ready.filter(({ stream }) => stream.options.repeatable) : [];
    const together = alone.length === 0 ? ready : ready.filter((each) => !alone.includes(each));
    if (together.length > 0) await this.#decode(together);
    for (const each of alone) await this.#decode([each]);
  }

  async #decode(batch: readonly ActiveStream[]): Promise<void> {
    const { context, repeatability } = this.options;
    // llama.cpp computes sequences together only if their ids are neighbours and in order.
    const ordered = [...batch].sort((a, b) => a.sequence.id - b.sequence.id);
    const minRows = batch.some(({ stream }) => stream.options.repeatable) ? (repeatability.minRows ?? 1) : 1;
    const rowsPerStream = batchRows(
      ordered.map(({ sequence }) => sequence.id),
      minRows,
    );
    context.initBatch(rowsPerStream.reduce((sum, rows) => sum + rows, 0));
    const batchIndices = ordered.map(({ sequence, next }, index) => {
      const rows = rowsPerStream[index] as number;
      // A copied row also requests logits: llama.cpp would leave it out of the last layer's batch.
      return context.addToBatch(
        sequence.id,
        nextPosition(sequence),
        new Uint32Array(rows).fill(next as Token),
        rows === 1 ? ONE_ROW : TWO_ROWS,
      )[0] as number;
    });
    await this.#streams.compute(ordered, batchIndices, () => {
      for (const [index, { sequence, next }] of ordered.entries()) {
        // Not bit-exact as a prompt prefix: kernels round single tokens and prompt slices differently.
        appendTokens(sequence, [next as Token], false);
        if ((rowsPerStream[index] as number) > 1) context.removeTokenCellsFromSequence(sequence.id, nextPosition(sequence), -1);
      }
    });
  }

  /** Decodes the only ready stream, with drafted tokens if they are likely to save time. */
  async #decodeAlone(active: ActiveStream): Promise<void> {
    const draft = this.#draft(active);
    if (draft.length > 0) return this.#verify(active, draft);
    const { canDraft, computeClock } = this.options;
    if (!canDraft || !this.#draftCost.shouldTimeRound()) return this.#decode([active]);
    const begin = computeClock();
    await this.#decode([active]);
    this.#draftCost.addRound(computeClock() - begin);
  }

  /** Guesses the tokens after `next`; empty if no draft is allowed or worthwhile. */
  #draft(active: ActiveStream): Token[] {
    const { stream, sequence, next } = active;
    const { canDraft, repeatability } = this.options;
    if (!canDraft || (stream.options.repeatable && !repeatability.exactDrafts)) return [];
    if (active.drafts === null) {
      const policy = new DraftPolicy(this.#draftCost);
      active.drafts = { policy, lookup: new PromptLookup(policy) };
    }
    // One less, because the last token of a stream is sampled but never decoded.
    return active.drafts.lookup.draft(sequence.tokens, next as Token, stream.remainingTokens - 1);
  }

  /** Decodes the next token and a draft in one batch. Samples in order up to the first token that differs from the draft. */
  async #verify(active: ActiveStream, draft: readonly Token[]): Promise<void> {
    const { context, computeClock } = this.options;
    const { sequence, stream, next } = active;
    const rows = nativeTokens([next as Token, ...draft]);
    const begin = computeClock();
    context.initBatch(rows.length);
    const batchIndices = context.addToBatch(sequence.id, nextPosition(sequence), rows, Uint32Array.from(rows.keys()));
    const results = await this.#streams.decodeAndSample([active], batchIndices);
    if (results === null) return;
    appendTokens(sequence, [next as Token], false);
    let accepted = 0;
    let more = true;
    try {
      let token = sampledToken(results[0] as PromiseSettledResult<number>);
      for (;;) {
        more = await this.#streams.accept(active, token, batchIndices[accepted] as number);
        if (!more || token !== draft[accepted]) break;
        appendTokens(sequence, [token as Token], false);
        accepted += 1;
        token = await context.sampleToken(batchIndices[accepted] as number, stream.options.sampler);
      }
    } catch (error) {
      this.#streams.fail(active, error);
      return;
    }
    if (accepted < draft.length) context.removeTokenCellsFromSequence(sequence.id, nextPosition(sequence), -1);
    active.drafts?.policy.addVerified(draft.length, accepted, computeClock() - begin);
    if (!more) this.#streams.finish(active);
  }
}
