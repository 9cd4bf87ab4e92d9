/**
 * `SequencePool`: sequences of the KV cache, reused by later requests of one cache scope with a common prompt prefix.
 *
 * Tokens of another scope are cleared first, because response times would reveal other prompts (docs/decisions/0015).
 */
import type { Token } from 'node-llama-cpp';
import type { NativeContext } from '../native.js';
import { type MediaSpan, positionAt, uncutLength } from './media-span.js';

/** A sequence of the KV cache. Only the decoder changes a taken sequence. */
export interface CachedSequence {
  readonly id: number;
  /** Tokens by position. */
  tokens: Token[];
  /** Images among the tokens, in order. */
  media: MediaSpan[];
  /** Null if nothing may be reused. */
  scope: string | null;
  /** Number of leading tokens computed bit-exactly. */
  bitExactTokens: number;
  /** Time of release, in milliseconds. */
  idleSince: number;
}

/** Position of the next token, which differs from its index after an image. */
export function nextPosition({ media, tokens }: CachedSequence): number {
  return positionAt(media, tokens.length);
}

/** Appends decoded tokens. `isBitExact`: their computation gives the same result on every run. */
export function appendTokens(sequence: CachedSequence, tokens: readonly Token[], isBitExact: boolean): void {
  if (isBitExact && sequence.bitExactTokens === sequence.tokens.length) sequence.bitExactTokens += tokens.length;
  for (const token of tokens) sequence.tokens.push(token);
}

interface SequenceRequest {
  readonly prompt: readonly Token[];
  readonly scope: string | null;
  /** Reuse only bit-exact tokens. */
  readonly repeatable: boolean;
  readonly media: readonly MediaSpan[];
}

interface SequencePoolOptions {
  readonly count: number;
  /** Repeatable requests reuse a multiple of this many tokens. */
  readonly grain: number;
  /** Tokens at the end of a prompt that a repeatable request always computes. */
  readonly minRest: number;
  /** Size of the attention's sliding window, which must be cached before the first computed position. Null with full attention. */
  readonly window: number | null;
  readonly now?: () => number;
}

type Memory = Pick<NativeContext, 'disposeSequence' | 'removeTokenCellsFromSequence' | 'getSequenceKvCacheMinPosition'>;

/** Must not be called during a batch. */
export class SequencePool {
  readonly #free: CachedSequence[];

  constructor(
    private readonly memory: Memory,
    private readonly options: SequencePoolOptions,
  ) {
    this.#free = Array.from({ length: options.count }, (_, id) => ({
      id,
      tokens: [],
      media: [],
      scope: null,
      bitExactTokens: 0,
      idleSince: 0,
    }));
  }

  get hasFree(): boolean {
    return this.#free.length > 0;
  }

  /** Takes the free sequence with the longest common prefix, cut to that prefix. Returns null if none is free. */
  take(request: SequenceRequest): CachedSequence | null {
    let best: CachedSequence | undefined;
    let length = -1;
    for (const each of this.#free) {
      const reusable = this.#reusable(each, request);
      if (best === undefined || reusable > length || (reusable === length && isBetterToOverwrite(each, best)))
        [best, length] = [each, reusable];
    }
    if (best === undefined) return null;
    this.#free.splice(this.#free.indexOf(best), 1);
    if (length === 0 || !this.#cut(best, length)) this.#wipe(best);
    best.scope = request.scope;
    return best;
  }

  release(sequence: CachedSequence): void {
    if (sequence.scope === null) this.#wipe(sequence);
    sequence.idleSince = this.#now();
    this.#free.push(sequence);
  }

  releaseUnknown(sequence: CachedSequence): void {
    sequence.scope = null;
    this.release(sequence);
  }

  /** Clears sequences idle for at least this time. Returns whether any tokens remain cached. */
  wipeIdle(milliseconds: number): boolean {
    let left = false;
    for (const each of this.#free) {
      if (each.tokens.length === 0) continue;
      if (this.#now() - each.idleSince >= milliseconds) this.#wipe(each);
      else left = true;
    }
    return left;
  }

  #reusable(sequence: CachedSequence, { prompt, scope, repeatable, media }: SequenceRequest): number {
    if (scope === null || sequence.scope !== scope) return 0;
    // The last token is always computed, because sampling needs its logits.
    const max = Math.min(sequence.tokens.length, prompt.length - 1);
    let length = 0;
    while (length < max && sequence.tokens[length] === prompt[length]) length++;
    if (!repeatable) return uncutLength(sequence.media, length);
    // Slices end at images, so the slice before an image may be too short to be bit-exact.
    if (media.length > 0) return 0;
    const { grain, minRest } = this.options;
    const same = Math.max(0, Math.min(length, sequence.bitExactTokens, prompt.length - minRest));
    return same - (same % grain);
  }

  /** False if the cache type cannot drop the rest of the sequence. */
  #cut(sequence: CachedSequence, length: number): boolean {
    const { window } = this.options;
    const position = positionAt(sequence.media, length);
    if (sequence.tokens.length > length && !this.memory.removeTokenCellsFromSequence(sequence.id, position, -1)) return false;
    const oldest = this.memory.getSequenceKvCacheMinPosition(sequence.id);
    if (oldest < 0 || (oldest > 0 && (window === null || oldest > position - window))) return false;
    sequence.tokens.length = length;
    sequence.media = sequence.media.filter(({ start }) => start < length);
    sequence.bitExactTokens = Math.min(sequence.bitExactTokens, length);
    return true;
  }

  #wipe(sequence: CachedSequence): void {
    if (sequence.tokens.length > 0 || sequence.idleSince > 0) this.memory.disposeSequence(sequence.id);
    sequence.tokens = [];
    sequence.media = [];
    sequence.scope = null;
    sequence.bitExactTokens = 0;
  }

  #now(): number {
    return (this.options.now ?? Date.now)();
  }
}

/** Whether the first sequence should be overwritten: empty, or idle for longer. Low ids first, as neighbours share batches. */
function isBetterToOverwrite(one: CachedSequence, other: CachedSequence): boolean {
  if ((one.tokens.length === 0) !== (other.tokens.length === 0)) return one.tokens.length === 0;
  if (one.tokens.length === 0) return one.id < other.id;
  return one.idleSince < other.idleSince;
}
