/** Renders a Messages response as SSE events. Clients require the event type twice, in the `event:` line and in the JSON. */
import type { ResponseMetadata, StreamRenderer } from '../format.js';
import { Transcript, type TranscriptItem } from '../output/transcript.js';
import type { FinishEvent, OutputEvent } from '../output-event.js';
import { sseEvent, sseJson } from '../sse.js';
import type { MessagesAnswerOptions } from './answer.js';
import { blockOf, endOf, inputUsage, messageOf, usageOf } from './message.js';

const PING = sseEvent('ping', '{"type":"ping"}');

export class MessagesStreamRenderer implements StreamRenderer {
  readonly #responseMetadata: ResponseMetadata;
  readonly #options: MessagesAnswerOptions;
  /** The start event; null before it. */
  #start: { readonly promptTokens: number; readonly cachedTokens?: number } | null = null;
  /** Whether `message_start` was rendered. */
  #isOpened = false;
  readonly #items: Transcript;
  /** The open content block. */
  #block: TranscriptItem | null = null;
  /** Index of the newest content block. */
  #index = -1;
  /** Whether a block other than thinking was opened. */
  #isVisible = false;
  #isFinished = false;

  constructor(responseMetadata: ResponseMetadata, options: MessagesAnswerOptions) {
    this.#responseMetadata = responseMetadata;
    this.#options = options;
    this.#items = new Transcript(options);
  }

  render(...events: readonly OutputEvent[]): string {
    let rendered = '';
    for (const event of events) rendered += this.#event(event);
    return rendered;
  }

  #event(event: OutputEvent): string {
    if (this.#isFinished) throw new Error('an event after the finish event');
    switch (event.type) {
      case 'start':
        this.#start = event;
        return '';
      case 'ping':
        return this.#opening() + PING;
      case 'finish':
        return this.#end(event);
      case 'text':
        if (event.text === '') return '';
        return this.#item(event) + this.#delta(`{"type":"text_delta","text":${sseJson(event.text)}}`);
      case 'reasoning':
        if (!this.#options.showReasoning || event.text === '') return '';
        return this.#item(event) + this.#delta(`{"type":"thinking_delta","thinking":${sseJson(event.text)}}`);
      case 'tool_call_start':
        return this.#item(event);
      case 'tool_call_arguments':
        if (event.delta === '') return this.#item(event);
        return this.#item(event) + this.#delta(`{"type":"input_json_delta","partial_json":${sseJson(event.delta)}}`);
      case 'choice_finish':
        throw new Error('a message has one choice');
      default:
        return event satisfies never;
    }
  }

  /** End of the previous block and start of the next, if the event starts a new item; else empty. */
  #item(event: OutputEvent): string {
    const item = this.#items.add(event);
    return item === null || item === this.#block ? '' : this.#open(item);
  }

  #open(item: TranscriptItem): string {
    const before = this.#opening() + this.#close();
    this.#block = item;
    this.#index++;
    if (item.type !== 'reasoning') this.#isVisible = true;
    const block = { ...blockOf(withoutContent(item), this.#responseMetadata), ...(item.type === 'reasoning' ? { signature: '' } : {}) };
    const start = sseEvent('content_block_start', sseJson({ type: 'content_block_start', index: this.#index, content_block: block }));
    return before + start + (this.#index === 0 ? PING : '');
  }

  #delta(delta: string): string {
    return sseEvent('content_block_delta', `{"type":"content_block_delta","index":${this.#index},"delta":${delta}}`);
  }

  #close(): string {
    if (this.#block === null) return '';
    const signature =
      this.#block.type === 'reasoning'
        ? this.#delta(sseJson({ type: 'signature_delta', signature: this.#responseMetadata.responseId }))
        : '';
    this.#block = null;
    return signature + sseEvent('content_block_stop', `{"type":"content_block_stop","index":${this.#index}}`);
  }

  #opening(): string {
    if (this.#isOpened) return '';
    if (this.#start === null) throw new Error('output before the start event');
    this.#isOpened = true;
    const usage = { ...inputUsage(this.#start.promptTokens, this.#start.cachedTokens ?? 0, this.#options), output_tokens: 0 };
    const message = messageOf(this.#responseMetadata, [], endOf(null), usage);
    return sseEvent('message_start', sseJson({ type: 'message_start', message }));
  }

  #end(finish: FinishEvent): string {
    const empty = this.#isVisible ? '' : this.#open({ type: 'text', text: '', logprobs: [] });
    const blocks = empty + this.#close();
    this.#isFinished = true;
    const delta = sseJson({ type: 'message_delta', delta: endOf(finish), usage: usageOf(finish, this.#options) });
    return blocks + sseEvent('message_delta', delta) + sseEvent('message_stop', '{"type":"message_stop"}');
  }
}

function withoutContent(item: TranscriptItem): TranscriptItem {
  return item.type === 'tool_call' ? { ...item, arguments: '' } : { ...item, text: '' };
}
