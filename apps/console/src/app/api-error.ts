/** What can go wrong between this page and the coordinator, in words for the person in front of it. */

/** The coordinator answered, and refused. */
export class ApiError extends Error {
  readonly status: number;
  /** As the table of errors names it, such as `not_signed_in`; empty when the answer was no error of ours. */
  readonly code: string;
  /** The member of the request that was wrong; null when none is named. */
  readonly param: string | null;
  readonly requestId: string | null;
  /** Seconds after which trying again makes sense; null when nothing was said. */
  readonly retryAfter: number | null;

  constructor(facts: {
    status: number;
    message: string;
    code: string;
    param: string | null;
    requestId: string | null;
    retryAfter: number | null;
  }) {
    super(facts.message);
    this.name = 'ApiError';
    this.status = facts.status;
    this.code = facts.code;
    this.param = facts.param;
    this.requestId = facts.requestId;
    this.retryAfter = facts.retryAfter;
  }
}

/** No answer came: the connection failed, or it took too long. */
export class ConnectionError extends Error {
  constructor(readonly reason: 'unreachable' | 'timeout') {
    super(reason === 'timeout' ? 'The coordinator took too long to answer.' : 'The coordinator could not be reached.');
    this.name = 'ConnectionError';
  }
}

/** Reads an answer that is not a success. Never throws: what cannot be read becomes a sentence with the status. */
export async function errorOf(response: Response): Promise<ApiError> {
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
