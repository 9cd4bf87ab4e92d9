/**
 * JSON requests to the coordinator, for all pages. Requests stay on this origin: the browser adds the session cookie and the
 * `Origin` header that changes require.
 *
 * Bodies have the JSON content type, which forms of other sites cannot send. Every request has a deadline.
 */
import { ACCOUNT_HEADER, activeAccountId } from './active-account.js';
import { ApiError, ConnectionError, readError } from './api-error.js';

export type QueryValue = string | number | boolean | null | undefined;

interface RequestOptions {
  /** Null and undefined members are omitted. */
  readonly query?: Readonly<Record<string, QueryValue>>;
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Account to act for; null: the personal account. Default: the active account of this tab. */
  readonly accountId?: string | null;
}

const TIMEOUT_MS = 30_000;

/** Error codes after which the session may have changed: sign-out, or another membership or role. */
const SESSION_CODES: ReadonlySet<string> = new Set(['not_signed_in', 'not_a_member']);

/** Listeners for responses with one of {@link SESSION_CODES}. */
const signedOut = new Set<() => void>();

/**
 * Registers a listener for responses, also to changes, after which the session may have changed. Returns the function that removes the
 * listener.
 */
export function onSessionChange(listener: () => void): () => void {
  signedOut.add(listener);
  return () => signedOut.delete(listener);
}

/** Bodies are not validated against their schema: this page and the API come from the same coordinator. */
export const api = {
  get: <Answer>(path: string, options?: RequestOptions) => request<Answer>('GET', path, undefined, options),
  post: <Answer>(path: string, body: unknown = {}, options?: RequestOptions) => request<Answer>('POST', path, body, options),
  put: <Answer>(path: string, body: unknown, options?: RequestOptions) => request<Answer>('PUT', path, body, options),
  patch: <Answer>(path: string, body: unknown, options?: RequestOptions) => request<Answer>('PATCH', path, body, options),
  delete: <Answer>(path: string, options?: RequestOptions) => request<Answer>('DELETE', path, undefined, options),
};

/** Path with its query; null and undefined members are omitted. */
function withQuery(path: string, query: RequestOptions['query'] = {}): string {
  const present = Object.entries(query).filter(([, value]) => value !== null && value !== undefined);
  const search = new URLSearchParams(Object.fromEntries(present.map(([name, value]) => [name, String(value)]))).toString();
  return search === '' ? path : `${path}?${search}`;
}

async function request<Answer>(method: string, path: string, body: unknown, options: RequestOptions = {}): Promise<Answer> {
  const deadline = AbortSignal.timeout(options.timeoutMs ?? TIMEOUT_MS);
  const accountId = options.accountId === undefined ? activeAccountId() : options.accountId;
  const signal = options.signal === undefined ? deadline : AbortSignal.any([options.signal, deadline]);
  try {
    const response = await fetch(withQuery(path, options.query), {
      method,
      signal,
      credentials: 'same-origin',
      redirect: 'error',
      headers: {
        accept: 'application/json',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(accountId === null ? {} : { [ACCOUNT_HEADER]: accountId }),
        ...options.headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw notifyListeners(await readError(response));
    if (accountId !== null && method !== 'GET' && path.startsWith('/console/v1/') && response.headers.get(ACCOUNT_HEADER) !== accountId) {
      throw wrongAccount(response);
    }
    return (response.status === 204 ? null : await response.json()) as Answer;
  } catch (error) {
    if (options.signal?.aborted) throw options.signal.reason;
    if (deadline.aborted) throw new ConnectionError('timeout');
    // `fetch` throws TypeError for a failed network and for an aborted response.
    if (error instanceof TypeError) throw new ConnectionError('unreachable');
    throw error;
  }
}

/** Coordinators of earlier versions do not know organisations, and have acted for the person. */
function wrongAccount({ status, headers }: Response): ApiError {
  const message =
    'This coordinator is being updated and changed your personal account instead of the organisation. Check your personal account, then try again.';
  return new ApiError({ status, code: 'wrong_account', message, param: null, requestId: headers.get('x-request-id'), retryAfter: null });
}

function notifyListeners(error: ApiError): ApiError {
  if (SESSION_CODES.has(error.code)) for (const listener of signedOut) listener();
  return error;
}
