/**
 * One occurrence of an error and its headers; what each code means is in the table beside this file. Each public error shape is a
 * small renderer of its own.
 */
import { ERRORS, type ErrorCode, errorRow } from './error-table.js';

/** An error as the HTTP response that tells of it. */
export interface HttpError {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** One occurrence of an error, in no particular public shape. */
export interface ApiError {
  readonly code: ErrorCode;
  /** For the client: bounded, and free of prompts and outputs. */
  readonly message: string;
  /** Request field at fault, such as `messages[0].content`. */
  readonly param: string | null;
  /** Whole seconds, at least 1. Absent: what the table says. */
  readonly retryAfter?: number;
  /** Of a prompt that is too long. Clients read both numbers out of the words that their format has for it. */
  readonly tooLong?: PromptLength;
}

/** In tokens. `actual` may be an estimate. */
export interface PromptLength {
  readonly limit: number;
  readonly actual: number;
}

/** Most characters of a message that reach a client. */
const MAX_MESSAGE_LENGTH = 512;

interface ErrorDetails {
  readonly message?: string;
  readonly param?: string;
  readonly retryAfter?: number;
  readonly tooLong?: PromptLength;
}

/** An error of this code. What `details` leaves out is filled from the table. */
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
  const row = errorRow(error.code);
  const headers: Record<string, string> = { 'content-type': 'application/json; charset=utf-8' };
  const retryAfter = error.retryAfter ?? row.retryAfter;
  if (!row.retry) headers['x-should-retry'] = 'false';
  else if (retryAfter !== undefined) headers['retry-after'] = String(retryAfter);
  // RFC 9110 section 11.6.1: a 401 names the scheme that is wanted.
  if (row.status === 401) headers['www-authenticate'] = 'Bearer';
  // RFC 9110 section 15.5.16: a 415 for an encoding names those that are taken.
  if (error.code === 'body_encoded') headers['accept-encoding'] = 'identity';
  if (error.code === 'encoding_unsupported') headers['accept-encoding'] = 'gzip, deflate';
  return headers;
}

/** A request that cannot be served as it stands. It is an {@link ApiError} that can be thrown. */
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
