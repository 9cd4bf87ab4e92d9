/** Error responses in Anthropic's format: `{type: "error", error: {type, message}, request_id}`. */
import { ERRORS } from './error-table.js';
import { type ApiError, errorHeaders, type HttpError } from './errors.js';

export function anthropicError(error: ApiError, requestId?: string): HttpError {
  const row = ERRORS[error.code];
  return { status: row.anthropicStatus ?? row.status, headers: errorHeaders(error), body: anthropicErrorBody(error, requestId) };
}

/** JSON body of an error response; also the data of an error event in a stream. */
export function anthropicErrorBody(error: ApiError, requestId?: string): string {
  const { anthropic: type, anthropicDetails: details } = ERRORS[error.code];
  return JSON.stringify({ type: 'error', error: { type, message: messageOf(error), details }, request_id: requestId ?? null });
}

/** The format has no error code for a prompt that is too long. Coding agents parse this exact sentence instead. */
function messageOf({ message, tooLong }: ApiError): string {
  return tooLong === undefined ? message : `prompt is too long: ${tooLong.actual} tokens > ${tooLong.limit} maximum`;
}
