/**
 * `OutputFilter` splits generated text into visible text, reasoning (think segments) and tool calls, and ends at a stop sequence.
 *
 * How the text is divided into pieces has no effect on the result.
 */
import type { OutputEvent, TokenLogprob } from '../output-event.js';
import { DEFAULT_THINK_TAGS } from './default-tags.js';
import { LogprobAligner } from './logprob-aligner.js';
import { StopMatcher } from './stop-matcher.js';
import { type TextEvent, ThinkFilter, type ThinkTags } from './think-filter.js';
import { type FilteredEvent, ToolCallFilter, type ToolCallOptions } from './tool-call-filter.js';

export interface OutputFilterOptions {
  /** Default: `<think>` and `</think>`. */
  readonly thinkTags?: ThinkTags;
  readonly stop: readonly string[];
  /** The prompt ends with an opening think tag, so the output starts in a think segment. */
  readonly startsInsideThinking?: boolean;
  /** Options for extracting tool calls. Absent: calls remain in the text. */
  readonly toolCalls?: ToolCallOptions;
  /** Text events include the log probabilities that were pushed with the text. */
  readonly logprobs?: boolean;
}

export class OutputFilter {
  readonly #characters = new CharacterBuffer();
  readonly #think: ThinkFilter;
  readonly #tools: ToolCallFilter | null;
  readonly #sequences: readonly string[];
  #stop: StopMatcher;
  #aligner: LogprobAligner | null;
  /** Calls after a stop sequence do not count. */
  #startedToolCalls = 0;

  constructor(options: OutputFilterOptions) {
    const aligner = options.logprobs ? new LogprobAligner() : null;
    const onSettled = aligner === null ? undefined : (length: number, hidden: boolean) => aligner.settle(length, hidden);
    this.#think = new ThinkFilter(options.thinkTags ?? DEFAULT_THINK_TAGS, options.startsInsideThinking ?? false, onSettled);
    this.#tools = options.toolCalls === undefined ? null : new ToolCallFilter(options.toolCalls);
    this.#sequences = options.stop;
    this.#stop = new StopMatcher(options.stop);
    this.#aligner = aligner;
  }

  /** Whether a stop sequence matched. Generation should end; further pushes have no effect. */
  get stopped(): boolean {
    return this.#stop.matched;
  }

  /** The matched stop sequence, or null. */
  get stopSequence(): string | null {
    return this.#stop.match;
  }

  /** Number of completed tool calls. */
  get completedToolCalls(): number {
    return Math.min(this.#tools?.completed ?? 0, this.#startedToolCalls);
  }

  /** Number of started tool calls. */
  get startedToolCalls(): number {
    return this.#startedToolCalls;
  }

  /**
   * Number of tokens in think segments so far; final after `end`.
   *
   * A partly hidden piece counts in proportion to its hidden characters, rounded. Tags are hidden; dropped white space is not. Tokens
   * without text count with the next piece.
   */
  get hiddenTokens(): number {
    return this.#think.hiddenTokens;
  }

  /**
   * Adds a piece of generated text, which may be empty. Text after the first tool call has no log probabilities.
   *
   * @param tokens Number of tokens of the piece.
   * @returns The events that are decided now, in order.
   */
  push(piece: string, tokens: number, logprobs: readonly TokenLogprob[] = []): OutputEvent[] {
    if (this.stopped) return [];
    const text = this.#characters.push(piece);
    this.#aligner?.expect(text, logprobs);
    return this.#visible(this.#think.push(text, tokens));
  }

  /** Ends the output. Returns the events for the withheld text. */
  end(): OutputEvent[] {
    if (this.stopped) return [];
    const half = this.#characters.end();
    this.#aligner?.expect(half, []);
    const events = this.#visible([...this.#think.push(half, 0), ...this.#think.end()]);
    if (this.stopped) return events;
    for (const event of this.#tools?.end() ?? []) {
      this.#filtered(event, events);
      if (this.stopped) return events;
    }
    this.#show(this.#stop.end(), events, true);
    return events;
  }

  #visible(filtered: readonly TextEvent[]): OutputEvent[] {
    const events: OutputEvent[] = [];
    for (const text of filtered) {
      if (text.type === 'reasoning') events.push(text);
      else {
        for (const event of this.#tools?.push(text.text) ?? [text]) {
          this.#filtered(event, events);
          if (this.stopped) return events;
        }
      }
    }
    return events;
  }

  #filtered(event: FilteredEvent | TextEvent, events: OutputEvent[]): void {
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

  /** Ends the text before a tool call, so that no stop sequence spans a call. */
  #endText(events: OutputEvent[]): void {
    this.#show(this.#stop.end(), events, true);
    this.#stop = new StopMatcher(this.#sequences);
    this.#aligner = null;
  }

  /** Emits visible text. `isLast`: no more text with log probabilities follows. */
  #show(text: string, events: OutputEvent[], isLast: boolean): void {
    if (this.#aligner === null) {
      if (text !== '') events.push({ type: 'text', text });
      return;
    }
    const logprobs = this.#aligner.take(text);
    if (isLast) logprobs.push(...this.#aligner.end());
    if (text !== '' || logprobs.length > 0) events.push({ type: 'text', text, logprobs });
  }
}

/**
 * `CharacterBuffer` keeps surrogate pairs together that are split between pieces of streamed text.
 *
 * Lone surrogates become U+FFFD, because UTF-8 cannot encode them.
 */
class CharacterBuffer {
  #half = '';

  push(piece: string): string {
    const text = this.#half + piece;
    const last = text.charCodeAt(text.length - 1);
    const split = last >= 0xd800 && last <= 0xdbff;
    this.#half = split ? text.slice(-1) : '';
    return repair(split ? text.slice(0, -1) : text);
  }

  end(): string {
    const rest = repair(this.#half);
    this.#half = '';
    return rest;
  }
}

function repair(text: string): string {
  return /[\ud800-\udfff]/.test(text) ? text.replace(/\p{Surrogate}/gu, '\ufffd') : text;
}
