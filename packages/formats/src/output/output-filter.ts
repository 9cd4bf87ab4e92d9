/** `OutputFilter`: generated text without think segments and tool calls, cut at a stop sequence. Chunk boundaries have no effect. */
import type { OutputEvent, TokenLogprob } from '../output-event.js';
import { CharacterBuffer } from './character-buffer.js';
import { LogprobAligner } from './logprob-aligner.js';
import { StopMatcher } from './stop-matcher.js';
import { DEFAULT_THINK_TAGS, type TextEvent, ThinkFilter, type ThinkTags } from './think-filter.js';
import { type FilteredEvent, ToolCallFilter, type ToolCallOptions } from './tool-call-filter.js';

export interface OutputFilterOptions {
  /** Default: `<think>` and `</think>`. */
  readonly thinkTags?: ThinkTags;
  readonly stop: readonly string[];
  /** The prompt ended with an opening think tag, so output starts inside a segment. */
  readonly startsInsideThinking?: boolean;
  /** Extracts tool calls. Absent: calls stay text. */
  readonly toolCalls?: ToolCallOptions;
  /** Text events carry the log probabilities pushed with their pieces. */
  readonly logprobs?: boolean;
}

export class OutputFilter {
  readonly #characters = new CharacterBuffer();
  readonly #think: ThinkFilter;
  readonly #tools: ToolCallFilter | null;
  readonly #sequences: readonly string[];
  #stop: StopMatcher;
  #aligner: LogprobAligner | null;
  /** Excludes calls cut off by a stop sequence in the preceding text. */
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

  /** A stop sequence matched: generation should end, and further pushes are dropped. */
  get stopped(): boolean {
    return this.#stop.matched;
  }

  /** The matched stop sequence, or null. */
  get stopSequence(): string | null {
    return this.#stop.match;
  }

  /** Completed tool calls. Generation ends after the first if parallel calls are disabled. */
  get completedToolCalls(): number {
    return Math.min(this.#tools?.completed ?? 0, this.#startedToolCalls);
  }

  /** Number of started tool calls. If above 0, a natural end finishes with `tool_calls`. */
  get startedToolCalls(): number {
    return this.#startedToolCalls;
  }

  /**
   * Tokens in think segments so far; final after `end`. A piece counts in proportion to its hidden characters, rounded.
   *
   * Tags are hidden characters, dropped white space is not. Tokens without text count with the next piece.
   */
  get hiddenTokens(): number {
    return this.#think.hiddenTokens;
  }

  /**
   * Consumes a piece of text, possibly empty. Text after the first tool call has no log probabilities.
   *
   * @param tokens Token count of the piece.
   * @returns Decided events in order.
   */
  push(piece: string, tokens: number, logprobs: readonly TokenLogprob[] = []): OutputEvent[] {
    if (this.stopped) return [];
    const text = this.#characters.push(piece);
    this.#aligner?.expect(text, logprobs);
    return this.#visible(this.#think.push(text, tokens));
  }

  /** Ends the output and releases withheld text. */
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

  /** A call ends the preceding text, so stop sequences never span a call. */
  #endText(events: OutputEvent[]): void {
    this.#show(this.#stop.end(), events, true);
    this.#stop = new StopMatcher(this.#sequences);
    this.#aligner = null;
  }

  /** `isLast`: no further text with log probabilities follows. */
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
