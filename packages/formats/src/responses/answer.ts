/** `responsesAnswer`: the rendering of the answer to a Responses request. */
import { ERRORS } from '../errors/error-table.js';
import type { ApiError } from '../errors/errors.js';
import type { AnswerFormat, PlainRenderer, ResponseMetadata } from '../format.js';
import { plainRenderer, Transcript } from '../output/transcript.js';
import { signatureComment } from '../signature.js';
import { SSE_DONE, sseEvent, sseJson } from '../sse.js';
import type { ResponsesEcho } from './echo.js';
import { ResponsesStreamRenderer } from './render-stream.js';
import { finalItems, responseOf } from './response.js';

/** Renders a response as one JSON body. */
function responsesPlainRenderer(responseMetadata: ResponseMetadata, echo: ResponsesEcho): PlainRenderer {
  const transcript = new Transcript({ showReasoning: true });
  return plainRenderer(transcript, (finish) => {
    transcript.addEmptyText();
    return responseOf(responseMetadata, echo, finish, finalItems(transcript.items, responseMetadata, finish));
  });
}

export function responsesAnswer(echo: ResponsesEcho): AnswerFormat {
  return {
    idPrefix: 'resp_',
    stream: (responseMetadata) => new ResponsesStreamRenderer(responseMetadata, echo),
    plain: (responseMetadata) => responsesPlainRenderer(responseMetadata, echo),
    signatureEvent: (_responseMetadata, signed) => signatureComment(signed) + SSE_DONE,
    streamError,
  };
}

/** Flat members as in the real API, and `error` as in Open Responses. `sequence_number` is unknown here; clients ignore 0. */
function streamError({ code, message, param }: ApiError): string {
  const row = ERRORS[code];
  const error = { type: row.type, code: row.code, message, param };
  return sseEvent('error', sseJson({ type: 'error', sequence_number: 0, code: row.code, message, param, error }));
}
