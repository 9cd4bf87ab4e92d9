/** How the answer to a Messages request is written. */
import { anthropicErrorBody } from '../errors/anthropic-error.js';
import type { AnswerFormat, Envelope, PlainRenderer } from '../format.js';
import { Transcript } from '../output/transcript.js';
import type { OutputEvent } from '../output-event.js';
import { signatureComment } from '../signature.js';
import { sseEvent } from '../sse.js';
import { blockOf, endOf, messageOf, usageOf } from './message.js';
import { MessagesStreamRenderer } from './render-stream.js';

/** Renders a message as one JSON body. */
class MessagesPlainRenderer implements PlainRenderer {
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

export interface MessagesAnswerOptions {
  /** Think sections are shown as thinking blocks. */
  readonly showReasoning: boolean;
  /** The request has a `cache_control`: cached tokens are reported apart. */
  readonly usesCacheControl: boolean;
}

export function messagesAnswer(options: MessagesAnswerOptions): AnswerFormat {
  return {
    idPrefix: 'msg_',
    callIdPrefix: 'toolu_',
    stream: (envelope) => new MessagesStreamRenderer(envelope, options),
    plain: (envelope) => new MessagesPlainRenderer(envelope, options),
    signatureEvent: (_envelope, signed) => signatureComment(signed),
    streamError: (error, requestId) => sseEvent('error', anthropicErrorBody(error, requestId)),
  };
}
