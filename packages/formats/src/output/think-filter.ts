/**
 * `ThinkFilter` separates reasoning (think segments) from visible text, and removes the tags. Possible starts of tags are withheld.
 *
 * Tags are recognized everywhere, even in code. Segments may nest. An unclosed segment extends to the end. Unmatched closing tags are
 * dropped.
 */
import type { OutputEvent } from '../output-event.js';
import { Automaton } from './automaton.js';
import { SegmentGap } from './segment-gap.js';

/** Drops characters that would complete a tag in the visible text. Removing a segment can join two halves: `<thi<think></think>nk>`. */
class TagGuard {
  readonly #automata: readonly Automaton[];

  constructor(tags: readonly string[]) {
    this.#automata = tags.map((tag) => new Automaton(tag));
  }

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

/** Visible text, or text of a think segment. */
export type TextEvent = Extract<OutputEvent, { type: 'text' | 'reasoning' }>;

/** Reports whether the next `length` UTF-16 units are hidden (in a think segment, or part of a tag) or visible. */
type OnVisibilityDecided = (length: number, hidden: boolean) => void;

export class ThinkFilter {
  readonly #tags: ThinkTags;
  readonly #onSettled: OnVisibilityDecided;
  readonly #gap = new SegmentGap();
  readonly #guard: TagGuard;
  readonly #tally = new TokenTally();
  /** Nesting depth of think segments. */
  #depth: number;
  /** Withheld text that may be the start of a tag. */
  #tail = '';

  /** Throws RangeError if a tag is empty or contains the other tag. */
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

  /** Approximate number of tokens in think segments so far, including tags; see {@link TokenTally}. */
  get hiddenTokens(): number {
    return this.#tally.hiddenTokens;
  }

  /** Adds a piece. Returns the events that are decided now; adjacent events of the same type are merged. */
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

  /** Start of the longest suffix, at or after `from`, that is a prefix of a tag; the length of the text if there is none. */
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

/** Appends text. Merges it with the last event if the type is the same. */
function append(events: TextEvent[], type: TextEvent['type'], text: string): void {
  if (text === '') return;
  const last = events.at(-1);
  if (last?.type === type) events[events.length - 1] = { type, text: last.text + text };
  else events.push({ type, text });
}

/** Piece of generated text. Lengths in UTF-16 units. */
interface Piece {
  readonly length: number;
  readonly tokens: number;
  undecidedLength: number;
  hiddenLength: number;
}

/** Counts tokens in think segments. A piece of text counts in proportion to its hidden characters, once all are decided. */
class TokenTally {
  /** Pieces with undecided characters, oldest first. At most as many as a tag has characters. */
  readonly #pieces: Piece[] = [];
  /** Tokens without text (parts of a character), which count with the next piece that has text. */
  #textlessTokens = 0;
  #hiddenTokens = 0;

  get hiddenTokens(): number {
    return this.#hiddenTokens;
  }

  /** Adds a piece of `length` characters (UTF-16 units) and `tokens` tokens. */
  expect(length: number, tokens: number): void {
    this.#textlessTokens += tokens;
    if (length === 0) return;
    this.#pieces.push({ length, tokens: this.#textlessTokens, undecidedLength: length, hiddenLength: 0 });
    this.#textlessTokens = 0;
  }

  /** Marks the next `length` characters as visible, or as hidden (in a think segment, or part of a tag). */
  settle(length: number, hidden: boolean): void {
    let remaining = length;
    while (remaining > 0) {
      const piece = this.#pieces[0];
      if (piece === undefined) throw new RangeError('more characters were settled than expected');
      const decided = Math.min(remaining, piece.undecidedLength);
      piece.undecidedLength -= decided;
      if (hidden) piece.hiddenLength += decided;
      remaining -= decided;
      if (piece.undecidedLength > 0) return;
      this.#hiddenTokens += Math.round((piece.tokens * piece.hiddenLength) / piece.length);
      this.#pieces.shift();
    }
  }

  /** Ends the output. Remaining tokens without text are hidden if a segment is open. */
  end(insideThinking: boolean): void {
    if (insideThinking) this.#hiddenTokens += this.#textlessTokens;
    this.#textlessTokens = 0;
  }
}
