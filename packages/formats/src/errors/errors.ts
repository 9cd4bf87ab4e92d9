/**
 * `ApiError` and the headers of error responses.
 *
 * `error-table.ts` defines the codes. `open-ai-error.ts`, `anthropic-error.ts`, `oauth-error.ts` and `problem-error.ts` render an
 * `ApiError` in a public format.
 */
import { ERRORS, type ErrorCode } from './error-table.js';

export interface HttpError {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** An error, independent of the public format. */
export interface ApiError {
  readonly code: ErrorCode;
  /** Message for the client. Has bounded length, and never contains prompts or outputs. */
  readonly message: string;
  /** The invalid request field, such as `messages[0].content`. */
  readonly param: string | null;
  /** `Retry-After` in whole seconds, at least 1. Default: the table's value. */
  readonly retryAfter?: number;
  /** Set if the prompt is too long. The renderers then use the format's standard sentence, from which clients parse the numbers. */
  readonly tooLong?: PromptLength;
}

/** Lengths in tokens. `actual` may be an estimate. */
interface PromptLength {
  readonly limit: number;
  readonly actual: number;
}

/** Maximum characters of a message sent to a client. */
const MAX_MESSAGE_LENGTH = 512;

interface ErrorDetails {
  readonly message?: string;
  readonly param?: string;
  readonly retryAfter?: number;
  readonly tooLong?: PromptLength;
}

/** Creates an error. Missing details come from the table. */
export function apiError(code: ErrorCode, details: ErrorDetails = {}): ApiError {
  return {
    code,
    message: (details.message ?? ERRORS[code].message).slice(0, MAX_MESSAGE_LENGTH),
    param: details.param ?? null,
    ...(details.tooLong === undefined ? {} : { tooLong: details.tooLong }),
    ...(details.retryAfter === undefined ? {} : { retryAfter: Math.max(1, Math.ceil(details.retryAfter)) }),
  };
}

/** Headers of an error response, the same in all formats. */
export function errorHeaders(error: ApiError): Readonly<Record<string, string>> {
  const row = ERRORS[error.code];
  const headers: Record<string, string> = { 'content-type': 'application/json; charset=utf-8' };
  const retryAfter = error.retryAfter ?? row.retryAfter;
  if (!row.retry) headers['x-should-retry'] = 'false';
  else if (retryAfter !== undefined) headers['retry-after'] = String(retryAfter);
  // RFC 9110 section 11.6.1: a 401 response must name the accepted scheme.
  if (row.status === 401) headers['www-authenticate'] = 'Bearer';
  // RFC 9110 section 15.5.16: a 415 response for an encoding should name the accepted encodings.
  if (error.code === 'body_encoded') headers['accept-encoding'] = 'identity';
  if (error.code === 'encoding_unsupported') headers['accept-encoding'] = 'gzip, deflate';
  return headers;
}

/** {@link ApiError} that parsers throw for a request that cannot be served. */
export class RequestError extends Error implements ApiError {
  constructor(
    readonly code: ErrorCode,
    readonly param: string | null,
    message: string,
  ) {
    super(message.slice(0, MAX_MESSAGE_LENGTH));
    this.name = 'RequestError';
  }
}
