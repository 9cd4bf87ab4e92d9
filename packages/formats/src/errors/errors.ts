/** Errors of one request and their headers. error-table.ts defines each code; each public shape has a small renderer. */
import { ERRORS, type ErrorCode } from './error-table.js';

/** Error as an HTTP response. */
export interface HttpError {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** An error, independent of its public shape. */
export interface ApiError {
  readonly code: ErrorCode;
  /** For the client: bounded, and free of prompts and outputs. */
  readonly message: string;
  /** Request field at fault, such as `messages[0].content`. */
  readonly param: string | null;
  /** Whole seconds, at least 1. Default: the table's value. */
  readonly retryAfter?: number;
  /** Set for a prompt that is too long. Clients parse both numbers from the format's standard sentence. */
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

/** Creates an error. The table supplies missing details. */
export function apiError(code: ErrorCode, details: ErrorDetails = {}): ApiError {
  return {
    code,
    message: (details.message ?? ERRORS[code].message).slice(0, MAX_MESSAGE_LENGTH),
    param: details.param ?? null,
    ...(details.tooLong === undefined ? {} : { tooLong: details.tooLong }),
    ...(details.retryAfter === undefined ? {} : { retryAfter: Math.max(1, Math.ceil(details.retryAfter)) }),
  };
}

/** Headers of an error in every format. */
export function errorHeaders(error: ApiError): Readonly<Record<string, string>> {
  const row = ERRORS[error.code];
  const headers: Record<string, string> = { 'content-type': 'application/json; charset=utf-8' };
  const retryAfter = error.retryAfter ?? row.retryAfter;
  if (!row.retry) headers['x-should-retry'] = 'false';
  else if (retryAfter !== undefined) headers['retry-after'] = String(retryAfter);
  // RFC 9110 section 11.6.1: a 401 names the accepted scheme.
  if (row.status === 401) headers['www-authenticate'] = 'Bearer';
  // RFC 9110 section 15.5.16: a 415 for an encoding names the accepted encodings.
  if (error.code === 'body_encoded') headers['accept-encoding'] = 'identity';
  if (error.code === 'encoding_unsupported') headers['accept-encoding'] = 'gzip, deflate';
  return headers;
}

/** Throwable {@link ApiError} for a request that cannot be served. */
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
