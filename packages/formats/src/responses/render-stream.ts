/** Renders a response as SSE events, in the order of OpenAI's API. Events are numbered from 0. */
import type { ResponseMetadata, StreamRenderer } from '../format.js';
import { Transcript, type TranscriptItem } from '../output/transcript.js';
import type { FinishEvent, OutputEvent } from '../output-event.js';
import { sseEvent, sseJson } from '../sse.js';
import type { ResponsesEcho } from './echo.js';
import { finalItems, finalStatus, type ItemStatus, itemId, outputItem, partOf, responseOf } from './response.js';

export class ResponsesStreamRenderer implements StreamRenderer {
  readonly #responseMetadata: ResponseMetadata;
  readonly #echo: ResponsesEcho;
  readonly #transcript = new Transcript({ showReasoning: true });
  /** Number of the next event. */
  #sequence = 0;
  /** The open item. */
  #current: TranscriptItem | null = null;
  /** Index of the current or latest item. */
  #index = -1;

  constructor(responseMetadata: ResponseMetadata, echo: ResponsesEcho) {
    this.#responseMetadata = responseMetadata;
    this.#echo = echo;
  }

  render(...events: readonly OutputEvent[]): string {
    let rendered = '';
    for (const event of events) rendered += this.#render(event);
    return rendered;
  }

  #render(event: OutputEvent): string {
    const item = this.#transcript.add(event);
    if (event.type === 'finish') return this.#end(event);
    if (item === null) return '';
    const start = item === this.#current ? '' : this.#opening() + this.#close('completed') + this.#open(item);
    return start + this.#delta(event);
  }

  #delta(event: OutputEvent): string {
    switch (event.type) {
      case 'text':
        return this.#event('response.output_text.delta', { ...this.#part(), delta: event.text, logprobs: event.logprobs ?? [] });
      case 'reasoning':
        return this.#event('response.reasoning_text.delta', { ...this.#part(), delta: event.text });
      case 'tool_call_arguments':
        return event.delta === '' ? '' : this.#event('response.function_call_arguments.delta', { ...this.#place(), delta: event.delta });
      default:
        return '';
    }
  }

  /** Events before the first other event; then empty. */
  #opening(): string {
    if (this.#sequence > 0) return '';
    const response = responseOf(this.#responseMetadata, this.#echo, null, []);
    return this.#event('response.created', { response }) + this.#event('response.in_progress', { response });
  }

  #open(item: TranscriptItem): string {
    this.#current = item;
    this.#index++;
    const { output_index, item_id } = this.#place();
    const begun = item.type === 'tool_call' ? { ...item, arguments: '' } : item;
    const added = this.#event('response.output_item.added', { output_index, item: outputItem(begun, item_id, 'in_progress') });
    if (item.type === 'tool_call') return added;
    const part = item.type === 'text' ? partOf({ ...item, text: '', logprobs: [] }) : partOf({ ...item, text: '' });
    return added + this.#event('response.content_part.added', { ...this.#part(), part });
  }

  /** Events that end the current item; empty if there is none. */
  #close(status: ItemStatus): string {
    const item = this.#current;
    if (item === null) return '';
    const { output_index, item_id } = this.#place();
    const done = this.#contentDone(item);
    this.#current = null;
    return done + this.#event('response.output_item.done', { output_index, item: outputItem(item, item_id, status) });
  }

  #contentDone(item: TranscriptItem): string {
    switch (item.type) {
      case 'text': {
        const { text, logprobs } = item;
        return this.#event('response.output_text.done', { ...this.#part(), text, logprobs }) + this.#partDone(item);
      }
      case 'reasoning':
        return this.#event('response.reasoning_text.done', { ...this.#part(), text: item.text }) + this.#partDone(item);
      case 'tool_call':
        return this.#event('response.function_call_arguments.done', { ...this.#place(), name: item.name, arguments: item.arguments });
      default:
        return item satisfies never;
    }
  }

  #partDone(item: Exclude<TranscriptItem, { type: 'tool_call' }>): string {
    return this.#event('response.content_part.done', { ...this.#part(), part: partOf(item) });
  }

  #end(finish: FinishEvent): string {
    let rendered = this.#opening();
    const empty = this.#transcript.addEmptyText();
    if (empty !== null) rendered += this.#close('completed') + this.#open(empty);
    rendered += this.#close(finalStatus(true, finish));
    const output = finalItems(this.#transcript.items, this.#responseMetadata, finish);
    const response = responseOf(this.#responseMetadata, this.#echo, finish, output);
    return rendered + this.#event(finish.reason === 'length' ? 'response.incomplete' : 'response.completed', { response });
  }

  /** Id and index of the current item. */
  #place() {
    if (this.#current === null) throw new Error('no item is open');
    return { item_id: itemId(this.#current, this.#index, this.#responseMetadata), output_index: this.#index };
  }

  /** Id and index of the current item, and the index of its only content part. */
  #part() {
    return { ...this.#place(), content_index: 0 };
  }

  #event(type: string, members: object): string {
    return sseEvent(type, sseJson({ type, sequence_number: this.#sequence++, ...members }));
  }
}
