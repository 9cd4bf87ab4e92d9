/**
 * The one way from this page to the coordinator's JSON. Requests stay on this origin, so the browser sends the session cookie
 * and the `Origin` that the console API asks of changes; bodies are JSON with its content type, which other sites' forms cannot
 * send. Every request has a deadline.
 */
import { type ApiError, ConnectionError, errorOf } from './api-error.js';

export type QueryValue = string | number | boolean | null | undefined;

interface RequestOptions {
  /** Members that are null or undefined are left out. */
  readonly query?: Readonly<Record<string, QueryValue>>;
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

const TIMEOUT_MS = 30_000;

/** Who is told when an answer says that nobody is signed in any more. */
const signedOut = new Set<() => void>();

/** Calls the listener whenever an answer, of a change too, says that nobody is signed in any more. Gives how to end that. */
export function onSignedOut(listener: () => void): () => void {
  signedOut.add(listener);
  return () => signedOut.delete(listener);
}

/** Answers are believed to have the shape of their schema: they come from the coordinator that served this page. */
export const api = {
  get: <Answer>(path: string, options?: RequestOptions) => request<Answer>('GET', path, undefined, options),
  post: <Answer>(path: string, body: unknown = {}, options?: RequestOptions) => request<Answer>('POST', path, body, options),
  put: <Answer>(path: string, body: unknown, options?: RequestOptions) => request<Answer>('PUT', path, body, options),
  patch: <Answer>(path: string, body: unknown, options?: RequestOptions) => request<Answer>('PATCH', path, body, options),
  delete: <Answer>(path: string, options?: RequestOptions) => request<Answer>('DELETE', path, undefined, options),
};

/** A path with its query; what is null or undefined is left out. */
function withQuery(path: string, query: RequestOptions['query'] = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined);
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return search === '' ? path : `${path}?${search}`;
}

async function request<Answer>(method: string, path: string, body: unknown, options: RequestOptions = {}): Promise<Answer> {
  const deadline = AbortSignal.timeout(options.timeoutMs ?? TIMEOUT_MS);
  const signal = options.signal === undefined ? deadline : AbortSignal.any([options.signal, deadline]);
  try {
    const response = await fetch(withQuery(path, options.query), {
      method,
      signal,
      credentials: 'same-origin',
      redirect: 'error',
      headers: { accept: 'application/json', ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...options.headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw noticed(await errorOf(response));
    return (response.status === 204 ? null : await response.json()) as Answer;
  } catch (error) {
    if (options.signal?.aborted) throw options.signal.reason;
    if (deadline.aborted) throw new ConnectionError('timeout');
    // What fetch throws for a network that failed, and for an answer that broke off.
    if (error instanceof TypeError) throw new ConnectionError('unreachable');
    throw error;
  }
}

function noticed(error: ApiError): ApiError {
  if (error.code === 'not_signed_in') for (const listener of signedOut) listener();
  return error;
}
