/** Renders a message as one JSON body. */
import type { Envelope, PlainRenderer } from '../format.js';
import { Transcript } from '../output/transcript.js';
import type { OutputEvent } from '../output-event.js';
import type { MessagesAnswerOptions } from './answer.js';
import { blockOf, endOf, messageOf, usageOf } from './message.js';

export class MessagesPlainRenderer implements PlainRenderer {
  readonly #envelope: Envelope;
  readonly #options: MessagesAnswerOptions;
  readonly #transcript: Transcript;

  constructor(envelope: Envelope, options: MessagesAnswerOptions) {
    this.#envelope = envelope;
    this.#options = options;
    this.#transcript = new Transcript(options);
  }

  add(...events: readonly OutputEvent[]): void {
    for (const event of events) this.#transcript.add(event);
  }

  body(): string {
    const finish = this.#transcript.finished();
    this.#transcript.addEmptyText();
    const blocks = this.#transcript.items.map((item) => blockOf(item, this.#envelope));
    return JSON.stringify(messageOf(this.#envelope, blocks, endOf(finish), usageOf(finish, this.#options)));
  }
}
