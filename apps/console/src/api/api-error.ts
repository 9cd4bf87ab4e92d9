/** Errors of requests through `api`: `ApiError` with a response, `ConnectionError` without. Both have a text for the user. */
import { DisplayableError } from '../ui/feedback/displayable-error.js';

interface ApiErrorFields {
  readonly status: number;
  readonly message: string;
  /** Error code, such as `not_signed_in`; empty if unknown. */
  readonly code: string;
  /** Name of the invalid request member; null if unknown. */
  readonly param: string | null;
  readonly requestId: string | null;
  /** Value of `retry-after` in seconds; null without the header. */
  readonly retryAfter: number | null;
}

/** Error response of the coordinator (4xx or 5xx). */
export class ApiError extends DisplayableError implements ApiErrorFields {
  readonly status: number;
  readonly code: string;
  readonly param: string | null;
  readonly requestId: string | null;
  readonly retryAfter: number | null;

  constructor({ status, message, code, param, requestId, retryAfter }: ApiErrorFields) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.code = code;
    this.param = param;
    this.requestId = requestId;
    this.retryAfter = retryAfter;
  }

  get displayText(): string {
    if (this.status !== 429 || this.retryAfter === null) return this.message;
    return `Too many requests. Try again in ${this.retryAfter} seconds.`;
  }

  /** Request id to quote to the operator. Null for 4xx, which report a fault of the request. */
  get supportId(): string | null {
    return this.status >= 500 ? this.requestId : null;
  }
}

/** No response: the connection failed, or the deadline passed. */
export class ConnectionError extends DisplayableError {
  readonly supportId = null;

  constructor(readonly reason: 'unreachable' | 'timeout') {
    super(reason === 'timeout' ? 'The coordinator took too long to answer.' : 'The coordinator could not be reached.');
    this.name = 'ConnectionError';
  }

  get displayText(): string {
    return `${this.message} Check your connection and try again.`;
  }
}

/** Returns the error of a response. Never throws: the message for an unreadable body names the status. */
export async function readError(response: Response): Promise<ApiError> {
  const { code, message, param } = await bodyOf(response);
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
  return new ApiError({
    status: response.status,
    message: message ?? `The coordinator answered with status ${response.status}.`,
    code: code ?? '',
    param: param ?? null,
    requestId: response.headers.get('x-request-id'),
    retryAfter: Number.isFinite(seconds) ? seconds : null,
  });
}

interface ErrorFields {
  readonly code?: string | undefined;
  readonly message?: string | undefined;
  readonly param?: string | undefined;
}

async function bodyOf(response: Response): Promise<ErrorFields> {
  try {
    const body: unknown = await response.json();
    const error = isRecord(body) && isRecord(body.error) ? body.error : {};
    const text = (name: string): string | undefined => (typeof error[name] === 'string' ? error[name] : undefined);
    return { code: text('code') ?? text('type'), message: text('message'), param: text('param') };
  } catch {
    return {};
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
