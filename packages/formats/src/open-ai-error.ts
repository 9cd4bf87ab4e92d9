/** Errors as OpenAI's endpoints show them: `{error: {message, type, param, code}}`, with all four members always there. */
import { errorRow } from './error-table.js';
import { type ApiError, errorHeaders, type HttpError } from './errors.js';

export function openAiError(error: ApiError): HttpError {
  return { status: errorRow(error.code).status, headers: errorHeaders(error), body: openAiErrorBody(error) };
}

/** The JSON text alone, as an event inside a stream carries it. */
export function openAiErrorBody(error: ApiError): string {
  const { type, code } = errorRow(error.code);
  return JSON.stringify({ error: { message: messageOf(error), type, param: error.param, code } });
}

/** Clients that know no code know a prompt that is too long by the first words. */
function messageOf({ message, tooLong }: ApiError): string {
  if (tooLong === undefined) return message;
  const { limit, actual } = tooLong;
  return `This model's maximum context length is ${limit} tokens. However, the request came to ${actual} tokens. Please reduce its length.`;
}
