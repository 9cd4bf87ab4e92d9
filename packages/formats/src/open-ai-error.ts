/** Errors as OpenAI's endpoints show them: `{error: {message, type, param, code}}`, with all four members always there. */
import { type ApiError, errorRow } from './errors.js';

export interface HttpError {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export function openAiError(error: ApiError): HttpError {
  const row = errorRow(error.code);
  const headers: Record<string, string> = { 'content-type': 'application/json; charset=utf-8' };
  const retryAfter = error.retryAfter ?? row.retryAfter;
  if (!row.retry) headers['x-should-retry'] = 'false';
  else if (retryAfter !== undefined) headers['retry-after'] = String(retryAfter);
  // RFC 9110 section 11.6.1: a 401 names the scheme that is wanted.
  if (row.status === 401) headers['www-authenticate'] = 'Bearer';
  return { status: row.status, headers, body: openAiErrorBody(error) };
}

/** The JSON text alone, as an event inside a stream carries it. */
export function openAiErrorBody(error: ApiError): string {
  const { type, code } = errorRow(error.code);
  return JSON.stringify({ error: { message: error.message, type, param: error.param, code } });
}
