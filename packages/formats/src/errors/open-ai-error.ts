/** Error responses in OpenAI's format: `{error: {message, type, param, code}}`. All four members are always present. */
import { ERRORS } from './error-table.js';
import { type ApiError, errorHeaders, type HttpError } from './errors.js';

export function openAiError(error: ApiError): HttpError {
  return { status: ERRORS[error.code].status, headers: errorHeaders(error), body: openAiErrorBody(error) };
}

/** JSON body of an error response; also the data of an error event in a stream. */
export function openAiErrorBody(error: ApiError): string {
  const { type, code } = ERRORS[error.code];
  return JSON.stringify({ error: { message: messageOf(error), type, param: error.param, code } });
}

/** Some clients ignore `code` and recognize a prompt that is too long by the first words of OpenAI's message. */
function messageOf({ message, tooLong }: ApiError): string {
  if (tooLong === undefined) return message;
  const { limit, actual } = tooLong;
  return `This model's maximum context length is ${limit} tokens. However, the request came to ${actual} tokens. Please reduce its length.`;
}
