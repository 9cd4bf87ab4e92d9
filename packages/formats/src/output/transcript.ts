/**
 * `Transcript` groups output events into response items: texts, reasoning and tool calls.
 *
 * Chunk boundaries have no effect, so a streamed and an unstreamed response have the same items.
 */
import type { PlainRenderer } from '../format.js';
import type { CompletedFinishReason, FinishEvent, OutputEvent, TokenLogprob } from '../output-event.js';

interface TextItem {
  readonly type: 'text';
  text: string;
  readonly logprobs: TokenLogprob[];
}
interface ReasoningItem {
  readonly type: 'reasoning';
  text: string;
}
interface ToolCallItem {
  readonly type: 'tool_call';
  readonly id: string;
  readonly name: string;
  arguments: string;
}
export type TranscriptItem = TextItem | ReasoningItem | ToolCallItem;

export class Transcript {
  readonly #showReasoning: boolean;
  readonly #items: TranscriptItem[] = [];
  #finish: FinishEvent | null = null;
  #calls = 0;

  /** Without `showReasoning`, reasoning creates no items. */
  constructor(options: { readonly showReasoning: boolean }) {
    this.#showReasoning = options.showReasoning;
  }

  get items(): readonly TranscriptItem[] {
    return this.#items;
  }

  get finish(): FinishEvent | null {
    return this.#finish;
  }

  /** All visible text. */
  get text(): string {
    return this.#items.map((item) => (item.type === 'text' ? item.text : '')).join('');
  }

  get reasoning(): string {
    return this.#items.map((item) => (item.type === 'reasoning' ? item.text : '')).join('');
  }

  get logprobs(): readonly TokenLogprob[] {
    return this.#items.flatMap((item) => (item.type === 'text' ? item.logprobs : []));
  }

  get toolCalls(): readonly ToolCallItem[] {
    return this.#items.filter((item) => item.type === 'tool_call');
  }

  /** Adds an event. Returns the item that it belongs to; null if the event is not visible. Throws if events are out of order. */
  add(event: OutputEvent): TranscriptItem | null {
    if (this.#finish !== null) throw new Error('an event after the finish event');
    switch (event.type) {
      case 'text': {
        if (event.text === '' && event.logprobs === undefined) return null;
        const last = this.#items.at(-1);
        const item = last?.type === 'text' ? last : this.#open({ type: 'text', text: '', logprobs: [] });
        item.text += event.text;
        if (event.logprobs !== undefined) item.logprobs.push(...event.logprobs);
        return item;
      }
      case 'reasoning': {
        if (event.text === '' || !this.#showReasoning) return null;
        const last = this.#items.at(-1);
        const item = last?.type === 'reasoning' ? last : this.#open({ type: 'reasoning', text: '' });
        item.text += event.text;
        return item;
      }
      case 'tool_call_start':
        if (event.index !== this.#calls) throw new Error('tool calls must be started in order');
        this.#calls++;
        return this.#open({ type: 'tool_call', id: event.id, name: event.name, arguments: '' });
      case 'tool_call_arguments': {
        const last = this.#items.at(-1);
        if (last?.type !== 'tool_call' || event.index !== this.#calls - 1) throw new Error('arguments of no open tool call');
        last.arguments += event.delta;
        return last;
      }
      case 'finish':
        this.#finish = event;
        return null;
      case 'choice_finish':
        throw new Error('a transcript has one choice');
      case 'start':
      case 'ping':
        return null;
      default:
        return event satisfies never;
    }
  }

  /** Adds an empty text item if there is neither text nor a call, because clients expect one. Null if none was needed. */
  addEmptyText(): TextItem | null {
    if (this.#items.some(({ type }) => type !== 'reasoning')) return null;
    return this.#open({ type: 'text', text: '', logprobs: [] });
  }

  /** Throws if the response has not finished. */
  finished(): FinishEvent {
    if (this.#finish === null) throw new Error('the response has not finished');
    return this.#finish;
  }

  #open<Item extends TranscriptItem>(item: Item): Item {
    this.#items.push(item);
    return item;
  }
}

export interface TranscriptChoice {
  readonly transcript: Transcript;
  readonly reason: CompletedFinishReason;
}

/** Renderer of unstreamed responses with one or several choices. `bodyOf` returns the JSON body. */
export function choicesRenderer(
  options: { readonly showReasoning: boolean },
  bodyOf: (choices: readonly TranscriptChoice[], finish: FinishEvent) => object,
): PlainRenderer {
  const ended: TranscriptChoice[] = [];
  let transcript = new Transcript(options);
  return {
    add: (...events) => {
      for (const event of events) {
        if (event.type === 'choice_finish') {
          ended.push({ transcript, reason: event.reason });
          transcript = new Transcript(options);
        } else transcript.add(event);
      }
    },
    body: () => {
      const finish = transcript.finished();
      return JSON.stringify(bodyOf(ended.length === 0 ? [{ transcript, reason: finish.reason }] : ended, finish));
    },
  };
}

/** Renderer of unstreamed responses with one choice. `bodyOf` returns the JSON body of the finished transcript. */
export function plainRenderer(transcript: Transcript, bodyOf: (finish: FinishEvent) => object): PlainRenderer {
  return {
    add: (...events) => {
      for (const event of events) transcript.add(event);
    },
    body: () => JSON.stringify(bodyOf(transcript.finished())),
  };
}
