/**
 * `Prefill` reads prompts into the KV cache, one slice of text or part of an image at a time.
 *
 * `PrefillQueue` chooses the prompt and the size of its slice. `PrefillBudget` limits the time while other streams generate.
 */
import { type NativeContext, nativeTokens } from '../native.js';
import type { Outbox } from '../outbox.js';
import type { ActiveStream, ActiveStreams } from './active-streams.js';
import type { MediaChunk } from './media-span.js';
import { nextImage } from './prefill-queue.js';
import type { Repeatability } from './repeatability.js';
import { appendTokens, nextPosition } from './sequence-pool.js';

/** Interval of progress reports while an image is read, because coordinators abort jobs without progress. */
const IMAGE_PROGRESS_MS = 10_000;
/** Time after which a hanging image read no longer counts as progress. */
const MAX_IMAGE_PROGRESS_MS = 300_000;

const NO_ROWS = new Uint32Array(0);

interface PrefillOptions {
  readonly context: NativeContext;
  readonly repeatability: Repeatability;
  readonly outbox: Outbox;
}

export class Prefill {
  readonly #options: PrefillOptions;
  readonly #streams: ActiveStreams;

  constructor(options: PrefillOptions, streams: ActiveStreams) {
    this.#options = options;
    this.#streams = streams;
  }

  /** Reads the next slice of a prompt while no stream generates. */
  async readAlone(): Promise<void> {
    this.#streams.prompts.budget.clear();
    await this.#readNext(null);
  }

  /** Reads slices of prompts after a round of decoding that took `decodeMs`, for as long as the generating streams may wait. */
  async readBesideDecoding(decodeMs: number): Promise<void> {
    const { budget } = this.#streams.prompts;
    budget.addDecode(decodeMs);
    let left = budget.isExhausted ? 0 : budget.roundMs;
    while (left > 0) {
      const took = await this.#readNext(left);
      if (took === null) break;
      left -= took;
      // The next slice would probably take as long as this one.
      if (left < took) break;
    }
    budget.endRound();
  }

  /**
   * Reads the next slice or image of a prompt. Resolves to the time taken in milliseconds, or to null if no prompt could be read.
   *
   * @param limitMs Time for the slice while other streams generate. Null if no stream generates.
   */
  async #readNext(limitMs: number | null): Promise<number | null> {
    const { prompts } = this.#streams;
    const active = prompts.take(limitMs !== null);
    if (active === undefined) return null;
    const { sequence, stream } = active;
    const image = nextImage(active);
    const contextTokens = sequence.tokens.length;
    const begin = performance.now();
    let rowCount = 0;
    if (image === undefined) rowCount = await this.#readSlice(active, limitMs);
    else await this.#readImage(active, image);
    const took = performance.now() - begin;
    if (image === undefined) prompts.slices.add(contextTokens, rowCount, took);
    if (limitMs !== null) {
      if (image !== undefined || stream.options.repeatable) prompts.budget.overdraw(took);
      else prompts.budget.charge(took);
    }
    this.#options.outbox.worked();
    return took;
  }

  /** Decodes the next slice of a prompt. Returns the number of computed rows. */
  async #readSlice(active: ActiveStream, limitMs: number | null): Promise<number> {
    const { context, repeatability } = this.#options;
    const { prompts } = this.#streams;
    const { sequence, stream } = active;
    const { prompt, repeatable } = stream.options;
    const at = sequence.tokens.length;
    const part = prompt.slice(at, at + prompts.sliceTokens(active, limitMs));
    const isLast = at + part.length === prompt.length;
    // A repeatable batch with too few rows is filled with copies, which are removed afterwards.
    const padding = repeatable ? Math.max(0, (repeatability.minRows ?? 1) - part.length) : 0;
    const rows = nativeTokens([...part, ...part.slice(0, padding)]);
    context.initBatch(rows.length);
    const batchIndices = context.addToBatch(sequence.id, nextPosition(sequence), rows, isLast ? Uint32Array.of(part.length - 1) : NO_ROWS);
    if (isLast) this.#streams.startGenerating(active);
    else prompts.add(active);
    await this.#streams.compute(isLast ? [active] : [], [...batchIndices], () => {
      appendTokens(sequence, part, prompts.isBitExact(at, part.length));
      prompts.tokensRead += part.length;
      if (padding > 0) context.removeTokenCellsFromSequence(sequence.id, nextPosition(sequence), -1);
      if (isLast) stream.options.onPromptRead?.();
    });
    return rows.length;
  }

  /** Encodes and decodes a part of an image. A failure ends only this stream. */
  async #readImage(active: ActiveStream, image: MediaChunk): Promise<void> {
    const { prompts } = this.#streams;
    const { sequence, stream } = active;
    prompts.add(active);
    this.#streams.writeAll();
    const progress = setInterval(() => this.#options.outbox.worked(), IMAGE_PROGRESS_MS);
    const limit = setTimeout(() => clearInterval(progress), MAX_IMAGE_PROGRESS_MS);
    try {
      await image.read(sequence.id, nextPosition(sequence));
    } catch (error) {
      this.#streams.fail(active, error);
      return;
    } finally {
      clearInterval(progress);
      clearTimeout(limit);
    }
    const { start, tokens, positions } = image;
    sequence.media.push({ start, tokens, positions });
    appendTokens(sequence, stream.options.prompt.slice(start, start + tokens), false);
    prompts.tokensRead += tokens;
  }
}
