/**
 * The table of all errors that clients see: status, public type and code, message and retry advice.
 *
 * The messages are defaults. Callers may replace them by texts that name a field, but quote no prompts or outputs.
 */

/** `error.type` in the Messages format. */
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

/** Properties that depend on the status. A row of `CODES` may override them. */
interface StatusRow {
  /** `error.type` of OpenAI-style bodies. */
  readonly type: string;
  /** `error.type` in the Messages format. */
  readonly anthropic: AnthropicType;
  /** Status in the Messages format, if different. */
  readonly anthropicStatus?: number;
  /** Whether SDKs should retry. False sends `x-should-retry: false`; by default, SDKs retry 408, 409, 429 and 5xx. */
  readonly retry: boolean;
}

interface CodeRow extends Partial<StatusRow> {
  readonly status: keyof typeof STATUSES;
  /** `error.code` of OpenAI-style bodies. Default: the row's key. */
  readonly code?: string;
  /** `error.details` in the Messages format. */
  readonly anthropicDetails?: Readonly<Record<string, unknown>>;
  /** Default `Retry-After` in seconds. */
  readonly retryAfter?: number;
  /** Default message. */
  readonly message: string;
}

type ErrorRow = StatusRow & CodeRow & { readonly code: string };

const request = 'invalid_request_error';
const server = 'server_error';

const STATUSES = {
  400: { type: request, anthropic: 'invalid_request_error', retry: false },
  401: { type: request, anthropic: 'authentication_error', retry: false },
  402: { type: 'insufficient_quota', anthropic: 'billing_error', retry: false },
  403: { type: 'permission_error', anthropic: 'permission_error', retry: false },
  404: { type: request, anthropic: 'not_found_error', retry: false },
  405: { type: request, anthropic: 'invalid_request_error', retry: false },
  408: { type: request, anthropic: 'timeout_error', retry: true },
  409: { type: request, anthropic: 'invalid_request_error', retry: false },
  410: { type: request, anthropic: 'not_found_error', retry: false },
  413: { type: request, anthropic: 'request_too_large', retry: false },
  415: { type: request, anthropic: 'invalid_request_error', retry: false },
  416: { type: request, anthropic: 'invalid_request_error', retry: false },
  422: { type: request, anthropic: 'invalid_request_error', retry: false },
  429: { type: 'rate_limit_error', anthropic: 'rate_limit_error', retry: true },
  500: { type: server, anthropic: 'api_error', retry: true },
  501: { type: server, anthropic: 'api_error', anthropicStatus: 500, retry: false },
  502: { type: server, anthropic: 'api_error', anthropicStatus: 500, retry: true },
  503: { type: server, anthropic: 'overloaded_error', anthropicStatus: 529, retry: true },
  504: { type: server, anthropic: 'timeout_error', retry: true },
} as const satisfies Record<number, StatusRow>;

const CODES = {
  invalid_json: { status: 400, message: 'The request body is not valid JSON.' },
  invalid_request: { status: 400, message: 'The request is not valid.' },
  unsupported_parameter: { status: 400, message: 'The request asks for something this service does not offer.' },
  unknown_parameter: { status: 400, message: 'The request has a member that is not known.' },
  /** On these details, the official SDK repeats the request with the whole conversation instead of `thread`. */
  thread_unsupported: {
    status: 400,
    code: 'unsupported_parameter',
    anthropicDetails: { error_code: 'thread_unsupported_request', unsupported: ['thread'] },
    message: 'thread is not supported: nothing is stored here. Send the whole conversation as messages.',
  },
  previous_response_not_found: { status: 400, message: 'Responses are not stored here. Send the whole conversation as input.' },
  context_length_exceeded: { status: 400, message: "The messages are longer than the model's context." },
  missing_api_key: {
    status: 401,
    code: 'invalid_api_key',
    message: 'No API key was given. Send it as "Authorization: Bearer <API key>" or as "x-api-key".',
  },
  invalid_api_key: { status: 401, message: 'The API key is not valid.' },
  /** For the console API, which authenticates by session instead of API key. */
  not_signed_in: { status: 401, message: 'Sign in first.' },
  insufficient_quota: { status: 402, message: 'Your balance does not cover this request. Add credits or lower max_tokens.' },
  key_budget_exceeded: {
    status: 402,
    message: 'The budget of this API key does not cover this request. Raise the budget or wait until it resets.',
  },
  webhook_not_authentic: { status: 401, type: 'authentication_error', message: 'The signature of this report is missing or wrong.' },
  webhook_refused: { status: 400, message: 'This report was refused.' },
  webhook_replayed: { status: 409, message: 'This report was received before.' },
  forbidden: { status: 403, message: 'This API key may not do that.' },
  /** The signed-in person is not a member of the organisation, or the organisation does not exist. */
  not_a_member: { status: 403, message: 'You are not a member of this organisation.' },
  account_suspended: { status: 403, message: 'This account is suspended.' },
  cross_origin: { status: 403, message: 'Pages of other sites may not do that here.' },
  model_not_found: { status: 404, message: 'No provider serves this model. GET /v1/models lists those that are served.' },
  not_found: { status: 404, message: 'There is nothing at this address.' },
  gone: { status: 410, message: 'The resource at this address has expired.' },
  method_not_allowed: { status: 405, message: 'This address does not support this method.' },
  body_too_slow: { status: 408, code: 'request_timeout', message: 'The request body arrived too slowly.' },
  conflict: { status: 409, message: 'The request conflicts with the current state.' },
  machine_offline: { status: 409, message: 'This machine is not connected. Commands are not queued: try again once it is connected.' },
  machine_unsupported: {
    status: 409,
    message: 'The agent on this machine is too old for commands. Run "inference-provider update" on it.',
  },
  machine_not_linked: { status: 409, message: 'This machine is not signed in to your account. Run "inference-provider login" on it.' },
  body_too_large: { status: 413, message: 'The request body is too large.' },
  not_json: { status: 415, code: 'unsupported_media_type', message: 'The content type of the request must be application/json.' },
  body_encoded: { status: 415, code: 'unsupported_media_type', message: 'The request body must not have a Content-Encoding.' },
  encoding_unsupported: {
    status: 415,
    code: 'unsupported_media_type',
    message: 'The Content-Encoding of a request body must be gzip or deflate, applied once, or be left out.',
  },
  range_not_satisfiable: { status: 416, message: 'The requested range is outside the content.' },
  not_sealed: {
    status: 415,
    code: 'unsupported_media_type',
    message: 'The content type of a sealed request must be application/vnd.inference.sealed-request.',
  },
  /** Tells the client to read the keyset again and to seal a new request. */
  stale_key: {
    status: 422,
    message: 'No candidate of the sealed request is connected with the key that it names. Read the keyset again and seal to its keys.',
  },
  sealed_request_replayed: { status: 409, message: 'This sealed request was received before. Seal a new one.' },
  rate_limit_exceeded: { status: 429, retryAfter: 1, message: 'Too many requests. Slow down and try again.' },
  internal: { status: 500, code: 'internal_error', message: 'The service failed to handle the request.' },
  transfer_coding_unsupported: {
    status: 501,
    type: request,
    anthropic: 'invalid_request_error',
    anthropicStatus: 501,
    message: 'The Transfer-Encoding of a request must be chunked or be left out.',
  },
  not_configured: { status: 501, message: 'This coordinator is not set up for that.' },
  payment_service_failed: { status: 502, message: 'The payment service did not answer. Nothing was charged.' },
  provider_failed: { status: 502, message: 'The provider failed to answer.' },
  bad_signature: {
    status: 502,
    code: 'response_verification_failed',
    message: "The provider's answer could not be verified and was discarded. It is not billed.",
  },
  no_provider: { status: 503, retryAfter: 5, message: 'No provider is free to serve this model now.' },
  /** The coordinator lacks a resource, usually memory for request bodies. The request was not started. */
  overloaded: { status: 503, retryAfter: 2, message: 'The service holds as many requests as it can. Try again in a moment.' },
  /** The ledger is not available. Without a reservation, no job runs. */
  billing_unavailable: {
    status: 503,
    retryAfter: 5,
    message: 'The request could not be booked now, and did not run. Try again in a moment.',
  },
  /** The disk for images is full or has failed. */
  images_unavailable: {
    status: 503,
    retryAfter: 30,
    message: 'There is no room to keep images for their URLs now. Ask for them with response_format b64_json, or try again in a moment.',
  },
  /** No connected provider that the request names or permits can serve it. */
  provider_not_available: {
    status: 503,
    retry: false,
    message: 'The provider with this serial number is not connected or does not serve this model.',
  },
  shutting_down: { status: 503, retryAfter: 2, message: 'The service is restarting. Try again in a moment.' },
  machine_timeout: { status: 504, retry: false, message: 'The Mac did not answer within 10 seconds.' },
  provider_timeout: { status: 504, message: 'The provider did not answer in time.' },
} as const satisfies Record<string, CodeRow>;

export type ErrorCode = keyof typeof CODES;

/** The rows of `CODES`, completed with the defaults of their status. */
export const ERRORS = Object.fromEntries(
  Object.entries<CodeRow>(CODES).map(([code, row]): [string, ErrorRow] => [code, { code, ...STATUSES[row.status], ...row }]),
) as Readonly<Record<ErrorCode, ErrorRow>>;
