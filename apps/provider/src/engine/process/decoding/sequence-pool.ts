/**
 * `SequencePool`: the sequences of the KV cache. A request reuses the cached prefix of an earlier prompt from its own cache scope.
 *
 * Tokens of other scopes are not reused, because response times would reveal other accounts' prompts (docs/decisions/0015).
 */
import type { Token } from 'node-llama-cpp';
import type { NativeContext } from '../native.js';
import { type MediaSpan, positionAt, uncutLength } from './media-span.js';

/** A sequence of the KV cache. While taken, its holder keeps the fields up to date. */
export interface CachedSequence {
  readonly id: number;
  /** Cached tokens, in order. */
  tokens: Token[];
  /** Images among the tokens, in order. */
  media: MediaSpan[];
  /** Cache scope of the tokens. Null if no request may reuse them. */
  scope: string | null;
  /** Number of leading tokens whose computation gives the same bits on every run. */
  bitExactTokens: number;
  /** Time of the last release, in milliseconds; 0 if never taken. */
  idleSince: number;
}

/** Position of the next token, which differs from its index after an image. */
export function nextPosition({ media, tokens }: CachedSequence): number {
  return positionAt(media, tokens.length);
}

/** Records decoded tokens. `isBitExact`: their computation gives the same bits on every run. */
export function appendTokens(sequence: CachedSequence, tokens: readonly Token[], isBitExact: boolean): void {
  if (isBitExact && sequence.bitExactTokens === sequence.tokens.length) sequence.bitExactTokens += tokens.length;
  for (const token of tokens) sequence.tokens.push(token);
}

interface SequenceRequest {
  readonly prompt: readonly Token[];
  readonly scope: string | null;
  /** Whether only bit-exact tokens may be reused. */
  readonly repeatable: boolean;
  readonly media: readonly MediaSpan[];
}

interface SequencePoolOptions {
  readonly count: number;
  /** Repeatable requests reuse multiples of this many tokens. */
  readonly grain: number;
  /** Tokens at the end of a prompt that a repeatable request always computes. */
  readonly minRest: number;
  /** Positions of the attention's sliding window, which must be cached before the first computed one. Null with full attention. */
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

  /** Takes the free sequence with the longest reusable prefix, cut to that prefix. Returns null if no sequence is free. */
  take(request: SequenceRequest): CachedSequence | null {
    let best: CachedSequence | undefined;
    let length = -1;
    for (const each of this.#free) {
      const reusable = this.#reusableTokens(each, request);
      if (best === undefined || reusable > length || (reusable === length && isBetterToOverwrite(each, best)))
        [best, length] = [each, reusable];
    }
    if (best === undefined) return null;
    this.#free.splice(this.#free.indexOf(best), 1);
    if (length === 0 || !this.#cut(best, length)) this.#wipe(best);
    best.scope = request.scope;
    return best;
  }

  /** Returns a sequence. Its tokens stay cached if it has a scope. */
  release(sequence: CachedSequence): void {
    if (sequence.scope === null) this.#wipe(sequence);
    sequence.idleSince = this.#now();
    this.#free.push(sequence);
  }

  /** Returns and clears a sequence, for unknown contents. */
  releaseWiped(sequence: CachedSequence): void {
    sequence.scope = null;
    this.release(sequence);
  }

  /** Clears sequences that have been free for at least this time. Returns whether other free sequences hold tokens. */
  wipeIdle(milliseconds: number): boolean {
    let left = false;
    for (const each of this.#free) {
      if (each.tokens.length === 0) continue;
      if (this.#now() - each.idleSince >= milliseconds) this.#wipe(each);
      else left = true;
    }
    return left;
  }

  #reusableTokens(sequence: CachedSequence, { prompt, scope, repeatable, media }: SequenceRequest): number {
    if (scope === null || sequence.scope !== scope) return 0;
    // The last token is always computed, because sampling needs its logits.
    const max = Math.min(sequence.tokens.length, prompt.length - 1);
    let length = 0;
    while (length < max && sequence.tokens[length] === prompt[length]) length++;
    if (!repeatable) return uncutLength(sequence.media, length);
    // The slice before an image may be too short to be bit-exact.
    if (media.length > 0) return 0;
    const { grain, minRest } = this.options;
    const same = Math.max(0, Math.min(length, sequence.bitExactTokens, prompt.length - minRest));
    return same - (same % grain);
  }

  /** Cuts a sequence to `length` tokens. False if the cache cannot drop the rest, or lacks positions that the rest of the prompt needs. */
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
    // A sequence that was never taken is empty.
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

/** Whether to overwrite `one`: empty before used ones, then low ids because neighbours share batches, then free for longer. */
function isBetterToOverwrite(one: CachedSequence, other: CachedSequence): boolean {
  if ((one.tokens.length === 0) !== (other.tokens.length === 0)) return one.tokens.length === 0;
  if (one.tokens.length === 0) return one.id < other.id;
  return one.idleSince < other.idleSince;
}
