/** How the answer to a Responses request is written. */
import { ERRORS } from '../errors/error-table.js';
import type { ApiError } from '../errors/errors.js';
import type { AnswerFormat, Envelope, PlainRenderer } from '../format.js';
import { Transcript } from '../output/transcript.js';
import type { OutputEvent } from '../output-event.js';
import { signatureComment } from '../signature.js';
import { SSE_DONE, sseEvent, sseJson } from '../sse.js';
import type { ResponsesEcho } from './echo.js';
import { ResponsesStreamRenderer } from './render-stream.js';
import { finalItems, responseOf } from './response.js';

/** Renders a response as one JSON body. */
class ResponsesPlainRenderer implements PlainRenderer {
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

export function responsesAnswer(echo: ResponsesEcho): AnswerFormat {
  return {
    idPrefix: 'resp_',
    stream: (envelope) => new ResponsesStreamRenderer(envelope, echo),
    plain: (envelope) => new ResponsesPlainRenderer(envelope, echo),
    signatureEvent: (_envelope, signed) => signatureComment(signed) + SSE_DONE,
    streamError,
  };
}

/**
 * Flat members as in the real API, and `error` as in Open Responses. The sender does not know the stream's last sequence number;
 * clients do not use the number.
 */
function streamError({ code, message, param }: ApiError): string {
  const row = ERRORS[code];
  const error = { type: row.type, code: row.code, message, param };
  return sseEvent('error', sseJson({ type: 'error', sequence_number: 0, code: row.code, message, param, error }));
}
