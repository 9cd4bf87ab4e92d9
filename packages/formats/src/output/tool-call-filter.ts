/**
 * `ToolCallFilter` extracts tool calls from streamed text, in the form of Hermes and Qwen models: `<tool_call>{...}</tool_call>`.
 *
 * Invalid calls remain in the text. White space is dropped: up to 64 characters before a call, and all after a call.
 */
import type { OutputEvent } from '../output-event.js';
import { DEFAULT_TOOL_CALL_TAGS } from './default-tags.js';
import { isSpace, ToolCallBody } from './tool-call-body.js';

export interface ToolCallTags {
  readonly open: string;
  readonly close: string;
}

export interface ToolCallOptions {
  /** Default: `<tool_call>` and `</tool_call>`. */
  readonly tags?: ToolCallTags;
  /** Returns the id of the call with this index. Ids must be unique across conversations. */
  readonly callId: (index: number) => string;
  /** Recognizes calls only at the start of the output. After other text, tags remain in the text. */
  readonly onlyAtStart?: boolean;
}

export type FilteredEvent = Extract<OutputEvent, { type: 'text' | 'tool_call_start' | 'tool_call_arguments' }>;

const MAX_SPACE = 64;

export class ToolCallFilter {
  readonly #tags: ToolCallTags;
  readonly #callId: (index: number) => string;
  readonly #onlyAtStart: boolean;
  #state: 'text' | 'body' | 'after_body' | 'no_more_calls' = 'text';
  /** Withheld text: white space that may precede a call, or a possible start of a tag. */
  #held = '';
  #body: ToolCallBody | null = null;
  #started = 0;
  #completed = 0;
  /** The last output was a call, so white space is dropped until text follows. */
  #isAfterCall = false;
  #events: FilteredEvent[] = [];
  #delta = '';

  constructor(options: ToolCallOptions) {
    this.#tags = options.tags ?? DEFAULT_TOOL_CALL_TAGS;
    this.#callId = options.callId;
    this.#onlyAtStart = options.onlyAtStart ?? false;
  }

  get completed(): number {
    return this.#completed;
  }

  push(piece: string): FilteredEvent[] {
    let rest = piece;
    while (rest !== '') rest = this.#read(rest);
    return this.#take();
  }

  /** Ends the output. Withheld text becomes visible. A started, truncated call remains a call. */
  end(): FilteredEvent[] {
    if (this.#state === 'text') this.#text(this.#held);
    else if (this.#state === 'body' && this.#body?.started === false) this.#text(this.#held + this.#tags.open + this.#body.raw);
    this.#body?.end();
    this.#held = '';
    return this.#take();
  }

  /** Consumes the start of a piece and returns the rest. */
  #read(piece: string): string {
    switch (this.#state) {
      case 'text':
        return this.#readText(piece);
      case 'body':
        return this.#readBody(piece);
      case 'after_body':
        return this.#readClosing(piece);
      case 'no_more_calls':
        this.#text(piece);
        return '';
      default:
        return this.#state satisfies never;
    }
  }

  #readText(piece: string): string {
    const text = this.#held + piece;
    if (this.#onlyAtStart && this.#started === 0 && isOther(text, this.#tags.open)) {
      this.#held = '';
      this.#state = 'no_more_calls';
      return text;
    }
    const tag = text.indexOf(this.#tags.open);
    const end = spaceBefore(text, tag === -1 ? startOfTag(text, this.#tags.open) : tag);
    this.#text(text.slice(0, end));
    if (tag === -1) {
      this.#held = text.slice(end);
      return '';
    }
    // This white space becomes visible if no valid call follows.
    this.#held = text.slice(end, tag);
    this.#state = 'body';
    this.#body = new ToolCallBody({
      started: (name) => this.#start(name),
      arguments: (delta) => {
        this.#delta += delta;
      },
    });
    return text.slice(tag + this.#tags.open.length);
  }

  #readBody(piece: string): string {
    const body = this.#body;
    if (body === null) throw new Error('no body is open');
    for (let at = 0; at < piece.length; at++) {
      const unit = piece[at] ?? '';
      const result = body.read(unit);
      if (result === 'more') continue;
      this.#body = null;
      if (result === 'done' || body.started) {
        this.#completed++;
        this.#state = 'after_body';
        return piece.slice(result === 'done' ? at + 1 : at);
      }
      this.#state = 'text';
      this.#text(this.#held + this.#tags.open + body.raw);
      this.#held = '';
      return piece.slice(at);
    }
    return '';
  }

  /** Skips the closing tag, which is optional. */
  #readClosing(piece: string): string {
    const text = (this.#held + piece).replace(/^[ \t\r\n]+/, '');
    this.#held = '';
    const { close } = this.#tags;
    if (text.length < close.length && close.startsWith(text)) {
      this.#held = text;
      return '';
    }
    this.#state = 'text';
    return text.startsWith(close) ? text.slice(close.length) : text;
  }

  #start(name: string): void {
    this.#endArguments();
    const index = this.#started++;
    this.#held = '';
    this.#isAfterCall = true;
    this.#events.push({ type: 'tool_call_start', index, id: this.#callId(index), name });
  }

  /** Emits the arguments since the last event as one event. */
  #endArguments(): void {
    if (this.#delta === '') return;
    this.#events.push({ type: 'tool_call_arguments', index: this.#started - 1, delta: this.#delta });
    this.#delta = '';
  }

  #text(text: string): void {
    const shown = this.#isAfterCall ? text.replace(/^[ \t\r\n]+/, '') : text;
    if (shown === '') return;
    this.#isAfterCall = false;
    this.#endArguments();
    this.#events.push({ type: 'text', text: shown });
  }

  #take(): FilteredEvent[] {
    this.#endArguments();
    const events = this.#events;
    this.#events = [];
    return events;
  }
}

/** Whether the text, apart from leading white space, cannot start with the tag. */
function isOther(text: string, tag: string): boolean {
  const start = text.trimStart();
  return !start.startsWith(tag) && !tag.startsWith(start);
}

/** Start of the longest suffix that is a prefix of the tag; the length of the text if there is none. */
function startOfTag(text: string, tag: string): number {
  for (let start = Math.max(0, text.length - tag.length + 1); start < text.length; start++) {
    if (tag.startsWith(text.slice(start))) return start;
  }
  return text.length;
}

/** Start of the white space before `end`, at most `MAX_SPACE` characters. */
function spaceBefore(text: string, end: number): number {
  let start = end;
  while (start > 0 && end - start < MAX_SPACE && isSpace(text[start - 1] ?? '')) start--;
  return start;
}
