/**
 * Takes think sections and their tags out of a text that arrives in pieces. The result depends on the text alone, never
 * on how it was cut: a tail that may still become a tag waits for what follows.
 *
 * Sections nest, and end where every opening tag has been closed; one that is never closed hides the rest. A closing tag
 * that closes nothing is taken out alone. Tags count everywhere, code included. An unfinished tag at the end is text.
 */
import type { OutputEvent } from '../output-event.js';
import { SectionGap } from './section-gap.js';
import { TagGuard } from './tag-guard.js';
import { TokenTally } from './token-tally.js';

export interface ThinkTags {
  readonly open: string;
  readonly close: string;
}

export const DEFAULT_THINK_TAGS: ThinkTags = { open: '<think>', close: '</think>' };

/** A stretch of output: visible text, or what stands in a section, without tags. */
export type Segment = Extract<OutputEvent, { type: 'text' | 'reasoning' }>;

/** Told of the next `length` UTF-16 units: whether they lie in a section, tags included. */
export type Settled = (length: number, hidden: boolean) => void;

export class ThinkFilter {
  readonly #tags: ThinkTags;
  readonly #onSettled: Settled;
  readonly #gap = new SectionGap();
  readonly #guard: TagGuard;
  readonly #tally = new TokenTally();
  /** Sections open. */
  #depth: number;
  /** Text that may be the beginning of a tag; shorter than the longer tag. */
  #tail = '';

  /** Throws RangeError when a tag is empty or lies within the other, since the two could not be told apart. */
  constructor(tags: ThinkTags, startsInside: boolean, onSettled: Settled = () => {}) {
    if (tags.open === '' || tags.close === '' || tags.open.includes(tags.close) || tags.close.includes(tags.open)) {
      throw new RangeError('think tags must not be empty or contain each other');
    }
    this.#tags = tags;
    this.#onSettled = onSettled;
    this.#guard = new TagGuard([tags.open, tags.close]);
    this.#depth = startsInside ? 1 : 0;
    if (startsInside) this.#gap.tag();
  }

  /** Tokens counted so far: those whose text lies for the greater part (or half) in think sections, tags included. */
  get hiddenTokens(): number {
    return this.#tally.hidden;
  }

  /** What the piece settles, in order; neighbours differ in type. */
  push(piece: string, tokens: number): Segment[] {
    this.#tally.expect(piece.length, tokens);
    const segments: Segment[] = [];
    const text = this.#tail + piece;
    let position = 0;
    let open = text.indexOf(this.#tags.open);
    let close = text.indexOf(this.#tags.close);
    while (open !== -1 || close !== -1) {
      const opens = close === -1 || (open !== -1 && open < close);
      const start = opens ? open : close;
      const tag = opens ? this.#tags.open : this.#tags.close;
      this.#text(text.slice(position, start), segments);
      this.#tag(tag, opens);
      position = start + tag.length;
      if (open !== -1 && open < position) open = text.indexOf(this.#tags.open, position);
      if (close !== -1 && close < position) close = text.indexOf(this.#tags.close, position);
    }
    const end = this.#startOfTail(text, position);
    this.#text(text.slice(position, end), segments);
    this.#tail = text.slice(end);
    return segments;
  }

  end(): Segment[] {
    const segments: Segment[] = [];
    this.#text(this.#tail, segments);
    this.#tail = '';
    append(segments, 'text', this.#guard.text(this.#gap.end()));
    this.#tally.end(this.#depth > 0);
    return segments;
  }

  #text(text: string, segments: Segment[]): void {
    if (text === '') return;
    const hidden = this.#depth > 0;
    this.#settle(text.length, hidden);
    if (hidden) append(segments, 'reasoning', text);
    else append(segments, 'text', this.#guard.text(this.#gap.text(text)));
  }

  #settle(length: number, hidden: boolean): void {
    this.#tally.settle(length, hidden);
    this.#onSettled(length, hidden);
  }

  #tag(tag: string, opens: boolean): void {
    this.#settle(tag.length, true);
    this.#gap.tag();
    if (opens) this.#depth++;
    else if (this.#depth > 0) this.#depth--;
  }

  /** Where the longest ending begins, from `from` on, that a tag may grow out of. */
  #startOfTail(text: string, from: number): number {
    const { open, close } = this.#tags;
    const longest = Math.max(open.length, close.length) - 1;
    for (let start = Math.max(from, text.length - longest); start < text.length; start++) {
      const ending = text.slice(start);
      if (open.startsWith(ending) || close.startsWith(ending)) return start;
    }
    return text.length;
  }
}

/** Adds a stretch, to the last segment where that is of the same type. */
function append(segments: Segment[], type: Segment['type'], text: string): void {
  if (text === '') return;
  const last = segments.at(-1);
  if (last?.type === type) segments[segments.length - 1] = { type, text: last.text + text };
  else segments.push({ type, text });
}
