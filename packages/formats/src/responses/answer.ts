/** How the answer to a Responses request is written. */
import { errorRow } from '../error-table.js';
import type { ApiError } from '../errors.js';
import type { AnswerFormat } from '../format.js';
import { signatureComment } from '../signature.js';
import { SSE_DONE, sseEvent, sseJson } from '../sse.js';
import type { ResponsesEcho } from './echo.js';
import { ResponsesPlainRenderer } from './render-plain.js';
import { ResponsesStreamRenderer } from './render-stream.js';

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
 * Flat members as in the real API, and `error` as in Open Responses. The sender of this event does not know the stream's last sequence
 * number; clients do not use it.
 */
function streamError({ code, message, param }: ApiError): string {
  const row = errorRow(code);
  const error = { type: row.type, code: row.code, message, param };
  return sseEvent('error', sseJson({ type: 'error', sequence_number: 0, code: row.code, message, param, error }));
}
