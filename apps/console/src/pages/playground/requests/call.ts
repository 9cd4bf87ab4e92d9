/** `call`: sends a request of the playground to the public API, with a deadline. Only this module of the console sends prompts. */
import {
  type ApiFailure,
  CONNECTION_LOST,
  NO_ANSWER,
  type Problem,
  problemFromFailure,
  type RequestFailure,
  TIMED_OUT,
} from './problems.js';

/** Maximum time until the response headers, including the wait in the request queue. */
const MAX_WAIT_MS = 180_000;

export interface Call {
  /** Origin of the API; default: origin of the page. */
  readonly base?: string;
  readonly path: string;
  readonly secret: string;
  /** Exact text of the body. */
  readonly body: string;
  /** Value that the machine repeats in the receipt; see {@link newNonce}. */
  readonly nonce: string;
  readonly signal: AbortSignal;
}

type CallResult =
  | { readonly kind: 'answer'; readonly response: Response; readonly deadline: Deadline }
  | RequestFailure
  | { readonly kind: 'stopped' };

/** Aborts a request after a time limit. The reader of the response may restart the timer, and must call `clear` at the end. */
export class Deadline {
  readonly #timeout = new AbortController();
  readonly signal: AbortSignal;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(stop: AbortSignal, ms: number) {
    this.signal = AbortSignal.any([stop, this.#timeout.signal]);
    this.restart(ms);
  }

  restart(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#timeout.abort(), ms);
  }

  get passed(): boolean {
    return this.#timeout.signal.aborted;
  }

  clear(): void {
    clearTimeout(this.#timer);
  }
}

/** The caller must clear the deadline of an answer. */
export async function call({ base = '', path, secret, body, nonce, signal }: Call): Promise<CallResult> {
  const deadline = new Deadline(signal, MAX_WAIT_MS);
  let failed = true;
  try {
    const response = await fetch(base + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', 'x-inference-nonce': nonce },
      body,
      credentials: 'omit',
      signal: deadline.signal,
    });
    if (!response.ok) return { kind: 'failed', status: response.status, problem: await problemFromResponse(response) };
    failed = false;
    return { kind: 'answer', response, deadline };
  } catch {
    return connectionFailure(signal, deadline);
  } finally {
    if (failed) deadline.clear();
  }
}

/** Result of a failed fetch or read: stopped by the user, timed out, or connection lost. */
export function connectionFailure(stop: AbortSignal, deadline: Deadline): CallResult & { kind: 'failed' | 'stopped' } {
  if (stop.aborted) return { kind: 'stopped' };
  return { kind: 'failed', status: null, problem: deadline.passed ? TIMED_OUT : CONNECTION_LOST };
}

/** base64url of 32 random bytes. */
export function newNonce(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
}

async function problemFromResponse(response: Response): Promise<Problem> {
  let error: { code?: unknown; message?: unknown } | undefined;
  try {
    error = ((await response.json()) as { error?: typeof error }).error;
  } catch {
    // The body is not JSON. A proxy may have answered.
  }
  const message = typeof error?.message === 'string' ? error.message : null;
  if (message === null && response.status < 500 && response.status !== 401 && response.status !== 429) return NO_ANSWER;
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN);
  const failure: ApiFailure = {
    status: response.status,
    code: typeof error?.code === 'string' ? error.code : '',
    message: message ?? `The service answered ${response.status}.`,
    retryAfter: Number.isFinite(retryAfter) && retryAfter > 0 ? retryAfter : null,
  };
  return problemFromFailure(failure);
}
