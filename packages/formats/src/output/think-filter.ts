/**
 * `ThinkFilter` separates visible text from reasoning. Text that may begin a tag is withheld until decided.
 *
 * Tags count everywhere, including code. Segments nest; an unclosed segment extends to the end; an unmatched closing tag is dropped.
 */
import type { OutputEvent } from '../output-event.js';
import { Automaton } from './automaton.js';
import { SectionGap } from './section-gap.js';
import { TokenTally } from './token-tally.js';

/** Drops characters that would complete a new tag: removing a segment can join halves (`<thi<think></think>nk>`). */
class TagGuard {
  readonly #automata: readonly Automaton[];

  constructor(tags: readonly string[]) {
    this.#automata = tags.map((tag) => new Automaton(tag));
  }

  /** Visible text without a character that would complete a tag. */
  text(text: string): string {
    let shown = '';
    let from = 0;
    for (let i = 0; i < text.length; i++) {
      const unit = text.charCodeAt(i);
      if (this.#automata.some((automaton) => automaton.wouldComplete(unit))) {
        shown += text.slice(from, i);
        from = i + 1;
      } else for (const automaton of this.#automata) automaton.step(unit);
    }
    return from === 0 ? text : shown + text.slice(from);
  }
}

export interface ThinkTags {
  readonly open: string;
  readonly close: string;
}

export const DEFAULT_THINK_TAGS: ThinkTags = { open: '<think>', close: '</think>' };

/** Visible text, or the text of a think segment, without tags. */
export type TextEvent = Extract<OutputEvent, { type: 'text' | 'reasoning' }>;

/** Called for the next `length` UTF-16 units. `hidden`: in a think segment, or part of any tag. */
type OnVisibilityDecided = (length: number, hidden: boolean) => void;

export class ThinkFilter {
  readonly #tags: ThinkTags;
  readonly #onSettled: OnVisibilityDecided;
  readonly #gap = new SectionGap();
  readonly #guard: TagGuard;
  readonly #tally = new TokenTally();
  /** Nesting depth of think segments. */
  #depth: number;
  /** Possible prefix of a tag; shorter than the longer tag. */
  #tail = '';

  /** Throws RangeError if a tag is empty or contains the other. */
  constructor(tags: ThinkTags, startsInside: boolean, onSettled: OnVisibilityDecided = () => {}) {
    if (tags.open === '' || tags.close === '' || tags.open.includes(tags.close) || tags.close.includes(tags.open)) {
      throw new RangeError('think tags must not be empty or contain each other');
    }
    this.#tags = tags;
    this.#onSettled = onSettled;
    this.#guard = new TagGuard([tags.open, tags.close]);
    this.#depth = startsInside ? 1 : 0;
    if (startsInside) this.#gap.tag();
  }

  /** Approximate tokens in think segments so far, tags included; each piece counts in proportion to its hidden text. */
  get hiddenTokens(): number {
    return this.#tally.hidden;
  }

  /** Output decided so far, in order; adjacent parts of the same type are merged. */
  push(piece: string, tokens: number): TextEvent[] {
    this.#tally.expect(piece.length, tokens);
    const events: TextEvent[] = [];
    const text = this.#tail + piece;
    let position = 0;
    let open = text.indexOf(this.#tags.open);
    let close = text.indexOf(this.#tags.close);
    while (open !== -1 || close !== -1) {
      const opens = close === -1 || (open !== -1 && open < close);
      const start = opens ? open : close;
      const tag = opens ? this.#tags.open : this.#tags.close;
      this.#text(text.slice(position, start), events);
      this.#tag(tag, opens);
      position = start + tag.length;
      if (open !== -1 && open < position) open = text.indexOf(this.#tags.open, position);
      if (close !== -1 && close < position) close = text.indexOf(this.#tags.close, position);
    }
    const end = this.#startOfTail(text, position);
    this.#text(text.slice(position, end), events);
    this.#tail = text.slice(end);
    return events;
  }

  end(): TextEvent[] {
    const events: TextEvent[] = [];
    this.#text(this.#tail, events);
    this.#tail = '';
    append(events, 'text', this.#guard.text(this.#gap.end()));
    this.#tally.end(this.#depth > 0);
    return events;
  }

  #text(text: string, events: TextEvent[]): void {
    if (text === '') return;
    const hidden = this.#depth > 0;
    this.#settle(text.length, hidden);
    if (hidden) append(events, 'reasoning', text);
    else append(events, 'text', this.#guard.text(this.#gap.text(text)));
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

  /** Start of the longest suffix from `from` on that is a prefix of a tag. */
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

/** Appends text, merging with a last segment of the same type. */
function append(events: TextEvent[], type: TextEvent['type'], text: string): void {
  if (text === '') return;
  const last = events.at(-1);
  if (last?.type === type) events[events.length - 1] = { type, text: last.text + text };
  else events.push({ type, text });
}
