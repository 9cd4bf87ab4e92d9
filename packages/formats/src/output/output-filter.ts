/**
 * From what an engine generates, piece by piece, to what a client may see: whole characters, no think sections, cut at the
 * first stop sequence in the visible text. Concatenated, the events are the same however the text was cut into pieces,
 * so streams and plain responses hold the same content.
 */
import type { OutputEvent, TokenLogprob } from '../output-event.js';
import { LogprobTrail } from './logprob-trail.js';
import { StopMatcher } from './stop-matcher.js';
import { DEFAULT_THINK_TAGS, type Segment, ThinkFilter, type ThinkTags } from './think-filter.js';
import { type FilteredEvent, ToolCallFilter, type ToolCallOptions } from './tool-call-filter.js';
import { WholeCharacters } from './whole-characters.js';

export interface OutputFilterOptions {
  /** Default: `<think>` and `</think>`. */
  readonly thinkTags?: ThinkTags;
  readonly stop: readonly string[];
  /** The prompt ended with an opening tag, so that the output begins inside its section. */
  readonly startsInsideThinking?: boolean;
  /** Calls are taken out of the text. Without it they stay text. */
  readonly toolCalls?: ToolCallOptions;
  /** Text events carry the log probabilities that were pushed with their pieces. */
  readonly logprobs?: boolean;
}

export class OutputFilter {
  readonly #characters = new WholeCharacters();
  readonly #think: ThinkFilter;
  readonly #tools: ToolCallFilter | null;
  readonly #sequences: readonly string[];
  #stop: StopMatcher;
  #trail: LogprobTrail | null;
  /** Those that a stop sequence in the text before them cut off are none. */
  #startedToolCalls = 0;

  constructor(options: OutputFilterOptions) {
    const trail = options.logprobs ? new LogprobTrail() : null;
    const onSettled = trail === null ? undefined : (length: number, hidden: boolean) => trail.settle(length, hidden);
    this.#think = new ThinkFilter(options.thinkTags ?? DEFAULT_THINK_TAGS, options.startsInsideThinking ?? false, onSettled);
    this.#tools = options.toolCalls === undefined ? null : new ToolCallFilter(options.toolCalls);
    this.#sequences = options.stop;
    this.#stop = new StopMatcher(options.stop);
    this.#trail = trail;
  }

  /** A stop sequence is complete: generation should end, and whatever else is pushed is dropped. */
  get stopped(): boolean {
    return this.#stop.matched;
  }

  /** The stop sequence that is complete, or null. */
  get stopSequence(): string | null {
    return this.#stop.match;
  }

  /** Tool calls read to the end; generation should end after the first where only one is wanted. */
  get completedToolCalls(): number {
    return Math.min(this.#tools?.completed ?? 0, this.#startedToolCalls);
  }

  /** Tool calls that were begun; with one, an output that ended by itself finishes with `tool_calls`. */
  get startedToolCalls(): number {
    return this.#startedToolCalls;
  }

  /**
   * Tokens of think sections so far. A piece's tokens count in proportion to the share of its characters that lie in
   * sections, tags included, rounded: a piece of one token counts when that is half or more. White space dropped around
   * a section is no part of it. Tokens without text count with the piece that follows them. Final after `end`.
   */
  get hiddenTokens(): number {
    return this.#think.hiddenTokens;
  }

  /**
   * Takes the text that `tokens` tokens came to; it may be ''. What it settles comes back, in order. Text after the first
   * tool call carries no log probabilities, and neither does anything of the call.
   */
  push(piece: string, tokens: number, logprobs: readonly TokenLogprob[] = []): OutputEvent[] {
    if (this.stopped) return [];
    const text = this.#characters.push(piece);
    this.#trail?.expect(text, logprobs);
    return this.#visible(this.#think.push(text, tokens));
  }

  /** Nothing more will be generated: what was withheld is released. */
  end(): OutputEvent[] {
    if (this.stopped) return [];
    const half = this.#characters.end();
    this.#trail?.expect(half, []);
    const events = this.#visible([...this.#think.push(half, 0), ...this.#think.end()]);
    if (this.stopped) return events;
    for (const event of this.#tools?.end() ?? []) {
      this.#filtered(event, events);
      if (this.stopped) return events;
    }
    this.#show(this.#stop.end(), events, true);
    return events;
  }

  #visible(segments: readonly Segment[]): OutputEvent[] {
    const events: OutputEvent[] = [];
    for (const segment of segments) {
      if (segment.type === 'reasoning') events.push(segment);
      else {
        for (const event of this.#tools?.push(segment.text) ?? [segment]) {
          this.#filtered(event, events);
          if (this.stopped) return events;
        }
      }
    }
    return events;
  }

  #filtered(event: FilteredEvent | Segment, events: OutputEvent[]): void {
    if (event.type === 'text') {
      const shown = this.#stop.push(event.text);
      this.#show(shown, events, this.stopped);
    } else {
      if (event.type === 'tool_call_start') {
        this.#endText(events);
        this.#startedToolCalls++;
      }
      events.push(event);
    }
  }

  /** A call ends the text before it, so no stop sequence reaches over it. */
  #endText(events: OutputEvent[]): void {
    this.#show(this.#stop.end(), events, true);
    this.#stop = new StopMatcher(this.#sequences);
    this.#trail = null;
  }

  /** `isLast`: no text follows that log probabilities would come with. */
  #show(text: string, events: OutputEvent[], isLast: boolean): void {
    if (this.#trail === null) {
      if (text !== '') events.push({ type: 'text', text });
      return;
    }
    const logprobs = this.#trail.take(text);
    if (isLast) logprobs.push(...this.#trail.end());
    if (text !== '' || logprobs.length > 0) events.push({ type: 'text', text, logprobs });
  }
}
