/** Renders a response as one JSON body. */
import type { Envelope, PlainRenderer } from '../format.js';
import { Transcript } from '../output/transcript.js';
import type { OutputEvent } from '../output-event.js';
import type { ResponsesEcho } from './echo.js';
import { finalItems, responseOf } from './response.js';

export class ResponsesPlainRenderer implements PlainRenderer {
  readonly #envelope: Envelope;
  readonly #echo: ResponsesEcho;
  readonly #transcript = new Transcript({ showReasoning: true });

  constructor(envelope: Envelope, echo: ResponsesEcho) {
    this.#envelope = envelope;
    this.#echo = echo;
  }

  add(...events: readonly OutputEvent[]): void {
    for (const event of events) this.#transcript.add(event);
  }

  body(): string {
    const finish = this.#transcript.finished();
    this.#transcript.addEmptyText();
    const items = finalItems(this.#transcript.items, this.#envelope, finish);
    return JSON.stringify(responseOf(this.#envelope, this.#echo, finish, items));
  }
}
