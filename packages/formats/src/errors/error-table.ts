/**
 * The only table of client-visible errors: each code defines status, public type and code, and whether a retry makes sense. Messages name
 * fields, never values.
 */

/** A type of errors in the Messages format. */
type AnthropicType =
  | 'invalid_request_error'
  | 'authentication_error'
  | 'billing_error'
  | 'permission_error'
  | 'not_found_error'
  | 'request_too_large'
  | 'rate_limit_error'
  | 'api_error'
  | 'timeout_error'
  | 'overloaded_error';

interface ErrorRow {
  readonly status: number;
  /** Status in the Messages format, if different. */
  readonly anthropicStatus?: number;
  /** `error.type` and `error.code` of OpenAI-style bodies. */
  readonly type: string;
  readonly code: string;
  /** `error.type` in the Messages format. */
  readonly anthropic: AnthropicType;
  /** `error.details` in the Messages format, for clients that act on them. */
  readonly anthropicDetails?: Readonly<Record<string, unknown>>;
  /** False makes SDKs give up. By default, SDKs retry 408, 409, 429 and 5xx. */
  readonly retry: boolean;
  /** Default `Retry-After` in seconds. */
  readonly retryAfter?: number;
  /** Said when there is nothing more particular to say. */
  readonly message: string;
}

const request = 'invalid_request_error';
const server = 'server_error';

export const ERRORS = {
  invalid_json: {
    status: 400,
    type: request,
    code: 'invalid_json',
    anthropic: 'invalid_request_error',
    retry: false,
    message: 'The request body is not valid JSON.',
  },
  invalid_request: {
    status: 400,
    type: request,
    code: 'invalid_request',
    anthropic: 'invalid_request_error',
    retry: false,
    message: 'The request is not valid.',
  },
  unsupported_parameter: {
    status: 400,
    type: request,
    code: 'unsupported_parameter',
    anthropic: 'invalid_request_error',
    retry: false,
    message: 'The request asks for something this service does not offer.',
  },
  /** The request has a member unknown to its format. */
  unknown_parameter: {
    status: 400,
    type: request,
    code: 'unknown_parameter',
    anthropic: 'invalid_request_error',
    retry: false,
    message: 'The request has a member that is not known.',
  },
  /** The official SDK then sends the whole conversation, and no `thread`. */
  thread_unsupported: {
    status: 400,
    type: request,
    code: 'unsupported_parameter',
    anthropic: 'invalid_request_error',
    anthropicDetails: { error_code: 'thread_unsupported_request', unsupported: ['thread'] },
    retry: false,
    message: 'thread is not supported: nothing is kept here. Send the whole conversation as messages.',
  },
  previous_response_not_found: {
    status: 400,
    type: request,
    code: 'previous_response_not_found',
    anthropic: 'invalid_request_error',
    retry: false,
    message: 'Responses are not stored here. Send the whole conversation as input.',
  },
  context_length_exceeded: {
    status: 400,
    type: request,
    code: 'context_length_exceeded',
    anthropic: 'invalid_request_error',
    retry: false,
    message: "The messages are longer than the model's context.",
  },
  missing_api_key: {
    status: 401,
    type: request,
    code: 'invalid_api_key',
    anthropic: 'authentication_error',
    retry: false,
    message: 'No API key was given. Send it as "Authorization: Bearer <API key>" or as "x-api-key".',
  },
  invalid_api_key: {
    status: 401,
    type: request,
    code: 'invalid_api_key',
    anthropic: 'authentication_error',
    retry: false,
    message: 'The API key is not valid.',
  },
  /** The console API identifies people by session, not by key. */
  not_signed_in: {
    status: 401,
    type: request,
    code: 'not_signed_in',
    anthropic: 'authentication_error',
    retry: false,
    message: 'Sign in first.',
  },
  insufficient_quota: {
    status: 402,
    type: 'insufficient_quota',
    code: 'insufficient_quota',
    anthropic: 'billing_error',
    retry: false,
    message: 'The balance does not cover this request. Deposit more or lower max_tokens.',
  },
  webhook_not_authentic: {
    status: 401,
    type: 'authentication_error',
    code: 'webhook_not_authentic',
    anthropic: 'authentication_error',
    retry: false,
    message: 'The signature of this report is missing or wrong.',
  },
  webhook_refused: {
    status: 400,
    type: request,
    code: 'webhook_refused',
    anthropic: 'invalid_request_error',
    retry: false,
    message: 'This report was refused.',
  },
  webhook_replayed: {
    status: 409,
    type: request,
    code: 'webhook_replayed',
    anthropic: 'invalid_request_error',
    retry: false,
    message: 'This report came before.',
  },
  forbidden: {
    status: 403,
    type: 'permission_error',
    code: 'forbidden',
    anthropic: 'permission_error',
    retry: false,
    message: 'This API key may not do that.',
  },
  account_suspended: {
    status: 403,
    type: 'permission_error',
    code: 'account_suspended',
    anthropic: 'permission_error',
    retry: false,
    message: 'This account is suspended.',
  },
  cross_origin: {
    status: 403,
    type: 'permission_error',
    code: 'cross_origin',
    anthropic: 'permission_error',
    retry: false,
    message: 'Pages of other sites may not do that here.',
  },
  model_not_found: {
    status: 404,
    type: request,
    code: 'model_not_found',
    anthropic: 'not_found_error',
    retry: false,
    message: 'No provider serves this model. GET /v1/models lists those that are served.',
  },
  not_found: {
    status: 404,
    type: request,
    code: 'not_found',
    anthropic: 'not_found_error',
    retry: false,
    message: 'There is nothing at this address.',
  },
  /** The resource existed and has expired. */
  gone: {
    status: 410,
    type: request,
    code: 'gone',
    anthropic: 'not_found_error',
    retry: false,
    message: 'What was at this address has been removed.',
  },
  method_not_allowed: {
    status: 405,
    type: request,
    code: 'method_not_allowed',
    anthropic: 'invalid_request_error',
    retry: false,
    message: 'This address does not take this method.',
  },
  body_too_slow: {
    status: 408,
    type: request,
    code: 'request_timeout',
    anthropic: 'timeout_error',
    retry: true,
    message: 'The request body came too slowly.',
  },
  conflict: {
    status: 409,
    type: request,
    code: 'conflict',
    anthropic: 'invalid_request_error',
    retry: false,
    message: 'This cannot be done as things are now.',
  },
  body_too_large: {
    status: 413,
    type: request,
    code: 'body_too_large',
    anthropic: 'request_too_large',
    retry: false,
    message: 'The request body is too large.',
  },
  not_json: {
    status: 415,
    type: request,
    code: 'unsupported_media_type',
    anthropic: 'invalid_request_error',
    retry: false,
    message: 'The content type of the request must be application/json.',
  },
  body_encoded: {
    status: 415,
    type: request,
    code: 'unsupported_media_type',
    anthropic: 'invalid_request_error',
    retry: false,
    message: 'The body of a request must come as it is, without a Content-Encoding.',
  },
  encoding_unsupported: {
    status: 415,
    type: request,
    code: 'unsupported_media_type',
    anthropic: 'invalid_request_error',
    retry: false,
    message: 'The Content-Encoding of a request body must be gzip or deflate, applied once, or be left out.',
  },
  range_not_satisfiable: {
    status: 416,
    type: request,
    code: 'range_not_satisfiable',
    anthropic: 'invalid_request_error',
    retry: false,
    message: 'The range that was asked for lies outside of what is there.',
  },
  rate_limit_exceeded: {
    status: 429,
    type: 'rate_limit_error',
    code: 'rate_limit_exceeded',
    anthropic: 'rate_limit_error',
    retry: true,
    retryAfter: 1,
    message: 'Too many requests. Slow down and try again.',
  },
  internal: {
    status: 500,
    type: server,
    code: 'internal_error',
    anthropic: 'api_error',
    retry: true,
    message: 'The service failed to handle the request.',
  },
  /** The operator has not configured the required feature. */
  not_configured: {
    status: 501,
    type: server,
    code: 'not_configured',
    anthropic: 'api_error',
    anthropicStatus: 500,
    retry: false,
    message: 'This coordinator is not set up for that.',
  },
  payment_service_failed: {
    status: 502,
    type: server,
    code: 'payment_service_failed',
    anthropic: 'api_error',
    anthropicStatus: 500,
    retry: true,
    message: 'The payment service did not answer. Nothing was charged.',
  },
  provider_failed: {
    status: 502,
    type: server,
    code: 'provider_failed',
    anthropic: 'api_error',
    anthropicStatus: 500,
    retry: true,
    message: 'The provider failed to answer.',
  },
  bad_signature: {
    status: 502,
    type: server,
    code: 'response_verification_failed',
    anthropic: 'api_error',
    anthropicStatus: 500,
    retry: true,
    message: "The provider's answer could not be verified and was discarded. It is not billed.",
  },
  no_provider: {
    status: 503,
    type: server,
    code: 'no_provider',
    anthropic: 'overloaded_error',
    anthropicStatus: 529,
    retry: true,
    retryAfter: 5,
    message: 'No provider is free to serve this model now.',
  },
  /** Request bodies exceed the memory limit. The request was not started. */
  overloaded: {
    status: 503,
    type: server,
    code: 'overloaded',
    anthropic: 'overloaded_error',
    anthropicStatus: 529,
    retry: true,
    retryAfter: 2,
    message: 'The service holds as many requests as it can. Try again in a moment.',
  },
  /** No job runs without a reservation. */
  billing_unavailable: {
    status: 503,
    type: server,
    code: 'billing_unavailable',
    anthropic: 'overloaded_error',
    anthropicStatus: 529,
    retry: true,
    retryAfter: 5,
    message: 'The request could not be booked now, and did not run. Try again in a moment.',
  },
  /** The disk for images is full, or fails. */
  images_unavailable: {
    status: 503,
    type: server,
    code: 'images_unavailable',
    anthropic: 'overloaded_error',
    anthropicStatus: 529,
    retry: true,
    retryAfter: 30,
    message: 'There is no room to keep images for their URLs now. Ask for them with response_format b64_json, or try again in a moment.',
  },
  /** `provider_serial` pins a request to one provider. SDK retries cannot make that provider return. */
  provider_not_available: {
    status: 503,
    type: server,
    code: 'provider_not_available',
    anthropic: 'overloaded_error',
    anthropicStatus: 529,
    retry: false,
    message: 'The provider with this serial number is not connected or does not serve this model.',
  },
  shutting_down: {
    status: 503,
    type: server,
    code: 'shutting_down',
    anthropic: 'overloaded_error',
    anthropicStatus: 529,
    retry: true,
    retryAfter: 2,
    message: 'The service is restarting. Try again in a moment.',
  },
  provider_timeout: {
    status: 504,
    type: server,
    code: 'provider_timeout',
    anthropic: 'timeout_error',
    retry: true,
    message: 'The provider did not answer in time.',
  },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof ERRORS;

/** The row of a code, with the optional members spelled out. */
export function errorRow(code: ErrorCode): ErrorRow {
  return ERRORS[code];
}
