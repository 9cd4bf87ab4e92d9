/** Sends with the playground key, and once more with a new key if the key is refused. */
import { ApiError } from '../../../api/api-error.js';
import { CONNECTION_LOST, type Problem, problemFromFailure, type RequestFailure } from './problems.js';

export interface KeySource {
  /** Creates a key unless a valid one is cached. Rejects with the error of the console API. */
  secret(): Promise<string>;
  /** Drops a key that was refused or has spent its limit. */
  forget(): void;
}

/** Outcome of a request, as far as this function reads it. `status`: see {@link RequestFailure}. */
interface Sent {
  readonly kind: string;
  readonly status?: number | null;
}

/** `send` performs the request with the given key. */
export async function sendWithKey<Outcome extends Sent>(
  key: KeySource,
  send: (secret: string) => Promise<Outcome>,
): Promise<Outcome | RequestFailure> {
  for (let tries = 1; ; tries++) {
    let secret: string;
    try {
      secret = await key.secret();
    } catch (error) {
      return { kind: 'failed', status: null, problem: problemFromKeyError(error) };
    }
    const outcome = await send(secret);
    const status = outcome.kind === 'failed' ? outcome.status : null;
    if (status === 401 || status === 402) key.forget();
    if (status !== 401 || tries > 1) return outcome;
  }
}

function problemFromKeyError(error: unknown): Problem {
  if (!(error instanceof ApiError)) return CONNECTION_LOST;
  if (error.status === 401) {
    return {
      title: 'You are signed out',
      text: 'Sign in again to continue.',
      remedy: { kind: 'link', href: '/sign-in?next=/playground', label: 'Sign in' },
    };
  }
  return problemFromFailure(error);
}
