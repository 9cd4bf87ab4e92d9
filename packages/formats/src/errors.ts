/**
 * The one table of what can go wrong for a client. A code decides status, public type and code, and whether trying again
 * makes sense; each public error shape is a small renderer beside this file. Messages name fields, never their values.
 */

interface ErrorRow {
  readonly status: number;
  /** `error.type` and `error.code` of OpenAI-style bodies. */
  readonly type: string;
  readonly code: string;
  /** False tells SDKs, which retry 408, 409, 429 and everything from 500 on, that it is no use. */
  readonly retry: boolean;
  /** Seconds to wait when whoever reports the error knows no better. */
  readonly retryAfter?: number;
  /** Said when there is nothing more particular to say. */
  readonly message: string;
}

const request = 'invalid_request_error';
const server = 'server_error';

export const ERRORS = {
  invalid_json: { status: 400, type: request, code: 'invalid_json', retry: false, message: 'The request body is not valid JSON.' },
  invalid_request: { status: 400, type: request, code: 'invalid_request', retry: false, message: 'The request is not valid.' },
  unsupported_parameter: {
    status: 400,
    type: request,
    code: 'unsupported_parameter',
    retry: false,
    message: 'The request asks for something this service does not offer.',
  },
  context_length_exceeded: {
    status: 400,
    type: request,
    code: 'context_length_exceeded',
    retry: false,
    message: "The messages are longer than the model's context.",
  },
  missing_api_key: {
    status: 401,
    type: request,
    code: 'invalid_api_key',
    retry: false,
    message: 'No API key was given. Send it as "Authorization: Bearer <API key>".',
  },
  invalid_api_key: { status: 401, type: request, code: 'invalid_api_key', retry: false, message: 'The API key is not valid.' },
  insufficient_quota: {
    status: 402,
    type: 'insufficient_quota',
    code: 'insufficient_quota',
    retry: false,
    message: 'The balance does not cover this request. Deposit more or lower max_tokens.',
  },
  forbidden: { status: 403, type: 'permission_error', code: 'forbidden', retry: false, message: 'This API key may not do that.' },
  model_not_found: {
    status: 404,
    type: request,
    code: 'model_not_found',
    retry: false,
    message: 'No provider serves this model. GET /v1/models lists those that are served.',
  },
  not_found: { status: 404, type: request, code: 'not_found', retry: false, message: 'There is nothing at this address.' },
  method_not_allowed: {
    status: 405,
    type: request,
    code: 'method_not_allowed',
    retry: false,
    message: 'This address does not take this method.',
  },
  body_too_large: { status: 413, type: request, code: 'body_too_large', retry: false, message: 'The request body is too large.' },
  rate_limit_exceeded: {
    status: 429,
    type: 'rate_limit_error',
    code: 'rate_limit_exceeded',
    retry: true,
    retryAfter: 1,
    message: 'Too many requests. Slow down and try again.',
  },
  internal: { status: 500, type: server, code: 'internal_error', retry: true, message: 'The service failed to handle the request.' },
  provider_failed: { status: 502, type: server, code: 'provider_failed', retry: true, message: 'The provider failed to answer.' },
  bad_signature: {
    status: 502,
    type: server,
    code: 'response_verification_failed',
    retry: true,
    message: "The provider's answer could not be verified and was discarded. It is not billed.",
  },
  no_provider: {
    status: 503,
    type: server,
    code: 'no_provider',
    retry: true,
    retryAfter: 5,
    message: 'No provider is free to serve this model now.',
  },
  /** `provider_serial` pins a request to one machine; whether that comes back soon is not for an SDK's back-off to find out. */
  provider_not_available: {
    status: 503,
    type: server,
    code: 'provider_not_available',
    retry: false,
    message: 'The provider with this serial number is not connected or does not serve this model.',
  },
  shutting_down: {
    status: 503,
    type: server,
    code: 'shutting_down',
    retry: true,
    retryAfter: 2,
    message: 'The service is restarting. Try again in a moment.',
  },
  provider_timeout: { status: 504, type: server, code: 'provider_timeout', retry: true, message: 'The provider did not answer in time.' },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof ERRORS;

/** One occurrence of an error, in no particular public shape. */
export interface ApiError {
  readonly code: ErrorCode;
  /** For the client: bounded, and free of prompts and outputs. */
  readonly message: string;
  /** Request field at fault, such as `messages[0].content`. */
  readonly param: string | null;
  /** Whole seconds, at least 1. Absent: what the table says. */
  readonly retryAfter?: number;
}

/** Most characters of a message that reach a client. */
const MAX_MESSAGE_LENGTH = 512;

/** An error of this code. What `details` leaves out is filled from the table. */
export function apiError(code: ErrorCode, details: { message?: string; param?: string; retryAfter?: number } = {}): ApiError {
  return {
    code,
    message: (details.message ?? ERRORS[code].message).slice(0, MAX_MESSAGE_LENGTH),
    param: details.param ?? null,
    ...(details.retryAfter === undefined ? {} : { retryAfter: Math.max(1, Math.ceil(details.retryAfter)) }),
  };
}

/** The row of a code, with the optional members spelled out. */
export function errorRow(code: ErrorCode): ErrorRow {
  return ERRORS[code];
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
