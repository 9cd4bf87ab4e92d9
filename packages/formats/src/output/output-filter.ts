/**
 * From what an engine generates, piece by piece, to what a client may see: whole characters, no think sections, cut at the
 * first stop sequence in the visible text. Concatenated, the events are the same however the text was cut into pieces,
 * so streams and plain responses hold the same content.
 */
import type { OutputEvent } from '../output-event.js';
import { StopMatcher } from './stop-matcher.js';
import { DEFAULT_THINK_TAGS, type Segment, ThinkFilter, type ThinkTags } from './think-filter.js';
import { WholeCharacters } from './whole-characters.js';

export interface OutputFilterOptions {
  /** Default: `<think>` and `</think>`. */
  readonly thinkTags?: ThinkTags;
  readonly stop: readonly string[];
  /** The prompt ended with an opening tag, so that the output begins inside its section. */
  readonly startsInsideThinking?: boolean;
}

export class OutputFilter {
  readonly #characters = new WholeCharacters();
  readonly #think: ThinkFilter;
  readonly #stop: StopMatcher;

  constructor(options: OutputFilterOptions) {
    this.#think = new ThinkFilter(options.thinkTags ?? DEFAULT_THINK_TAGS, options.startsInsideThinking ?? false);
    this.#stop = new StopMatcher(options.stop);
  }

  /** A stop sequence is complete: generation should end, and whatever else is pushed is dropped. */
  get stopped(): boolean {
    return this.#stop.matched;
  }

  /**
   * Tokens of think sections so far. A piece's tokens count in proportion to the share of its characters that lie in
   * sections, tags included, rounded: a piece of one token counts when that is half or more. White space dropped around
   * a section is no part of it. Tokens without text count with the piece that follows them. Final after `end`.
   */
  get hiddenTokens(): number {
    return this.#think.hiddenTokens;
  }

  /** Takes the text that `tokens` tokens came to; it may be ''. What it settles comes back, in order. */
  push(piece: string, tokens: number): OutputEvent[] {
    if (this.stopped) return [];
    return this.#untilStop(this.#think.push(this.#characters.push(piece), tokens));
  }

  /** Nothing more will be generated: what was withheld is released. */
  end(): OutputEvent[] {
    if (this.stopped) return [];
    const half = this.#think.push(this.#characters.end(), 0);
    const events = this.#untilStop([...half, ...this.#think.end()]);
    if (!this.stopped) addText(events, this.#stop.end());
    return events;
  }

  #untilStop(segments: readonly Segment[]): OutputEvent[] {
    const events: OutputEvent[] = [];
    for (const segment of segments) {
      if (segment.type === 'text') addText(events, this.#stop.push(segment.text));
      else events.push(segment);
      if (this.stopped) break;
    }
    return events;
  }
}

function addText(events: OutputEvent[], text: string): void {
  if (text !== '') events.push({ type: 'text', text });
}
