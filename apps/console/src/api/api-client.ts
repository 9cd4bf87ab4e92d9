/**
 * `api`: JSON requests to the coordinator, on the same origin, each with a deadline. Prompts of the playground go through
 * `playground/requests/call.ts` instead.
 *
 * The session is a cookie. To prevent cross-site request forgery, the coordinator requires the browser's `Origin` header and the JSON
 * content type.
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
  /** Organisation to act for; null: the personal account. Default: the active account of this tab. */
  readonly accountId?: string | null;
}

const TIMEOUT_MS = 30_000;

/** Error codes after which the session must be read again: signed out, or no longer a member. */
const SESSION_CODES: ReadonlySet<string> = new Set(['not_signed_in', 'not_a_member']);

const sessionListeners = new Set<() => void>();

/** Registers a listener for errors with a code of {@link SESSION_CODES}. Returns a function to remove the listener. */
export function onSessionChange(listener: () => void): () => void {
  sessionListeners.add(listener);
  return () => sessionListeners.delete(listener);
}

/**
 * Requests by HTTP method. Resolve to the parsed body, null for status 204. Reject with {@link ApiError}, {@link ConnectionError}, or the
 * reason of an aborted signal.
 *
 * Response bodies are not validated: the console and the API come from the same coordinator.
 */
export const api = {
  get: <Answer>(path: string, options?: RequestOptions) => request<Answer>('GET', path, undefined, options),
  post: <Answer>(path: string, body: unknown = {}, options?: RequestOptions) => request<Answer>('POST', path, body, options),
  put: <Answer>(path: string, body: unknown, options?: RequestOptions) => request<Answer>('PUT', path, body, options),
  patch: <Answer>(path: string, body: unknown, options?: RequestOptions) => request<Answer>('PATCH', path, body, options),
  delete: <Answer>(path: string, options?: RequestOptions) => request<Answer>('DELETE', path, undefined, options),
};

/** Appends the query to the path, without null and undefined members. */
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
    if (!response.ok) {
      const error = await readError(response);
      if (SESSION_CODES.has(error.code)) for (const listener of sessionListeners) listener();
      throw error;
    }
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

/** Error for a response that does not repeat the requested account id: a coordinator of an earlier version used the personal account. */
function wrongAccount({ status, headers }: Response): ApiError {
  const message =
    'This coordinator is being updated and changed your personal account instead of the organisation. Check your personal account, then try again.';
  return new ApiError({ status, code: 'wrong_account', message, param: null, requestId: headers.get('x-request-id'), retryAfter: null });
}
