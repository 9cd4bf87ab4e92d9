/** `responsesAnswer` returns the renderers for the response to a Responses request, streamed or not. */
import { ERRORS } from '../errors/error-table.js';
import type { ApiError } from '../errors/errors.js';
import type { AnswerFormat, PlainRenderer, ResponseMetadata } from '../format.js';
import { plainRenderer, Transcript } from '../output/transcript.js';
import { signatureComment } from '../signature.js';
import { SSE_DONE, sseEvent, sseJson } from '../sse.js';
import type { ResponsesEcho } from './echo.js';
import { ResponsesStreamRenderer } from './render-stream.js';
import { finalItems, responseOf } from './response.js';

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
    terminalEvents: ['response.completed', 'response.incomplete'],
    bodyMember: { name: 'object', value: 'response' },
    stream: (responseMetadata) => new ResponsesStreamRenderer(responseMetadata, echo),
    plain: (responseMetadata) => responsesPlainRenderer(responseMetadata, echo),
    signatureEvent: (_responseMetadata, signed) => signatureComment(signed) + SSE_DONE,
    streamError,
  };
}

/**
 * Error event with members of two formats: flat as in OpenAI's API, and in `error` as in Open Responses.
 *
 * The real `sequence_number` is not known here. Clients ignore the number.
 */
function streamError({ code, message, param }: ApiError): string {
  const row = ERRORS[code];
  const error = { type: row.type, code: row.code, message, param };
  return sseEvent('error', sseJson({ type: 'error', sequence_number: 0, code: row.code, message, param, error }));
}
