/** A chat completion as one JSON body, in the shape of the real API. */
import type { Envelope, OutputEvent, PlainRenderer } from '../format.js';
import { chatUsage } from './usage.js';

export class ChatPlainRenderer implements PlainRenderer {
  readonly #envelope: Envelope;
  #content = '';
  #finish: Extract<OutputEvent, { type: 'finish' }> | null = null;

  constructor(envelope: Envelope) {
    this.#envelope = envelope;
  }

  add(...events: readonly OutputEvent[]): void {
    for (const event of events) {
      if (this.#finish !== null) throw new Error('an event after the finish event');
      if (event.type === 'text') this.#content += event.text;
      else if (event.type === 'finish') this.#finish = event;
    }
  }

  body(): string {
    if (this.#finish === null) throw new Error('the response has not finished');
    const { responseId, created, model } = this.#envelope;
    const { reason, usage, hiddenTokens } = this.#finish;
    return JSON.stringify({
      id: responseId,
      object: 'chat.completion',
      created,
      model,
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: this.#content, refusal: null },
          logprobs: null,
          finish_reason: reason,
        },
      ],
      usage: chatUsage(usage, hiddenTokens),
    });
  }
}
