/** Sends with the playground key, and once more with a new key if the key is refused. */
import { ApiError } from '../../../api/api-error.js';
import { CONNECTION_LOST, type Problem, problemFromFailure } from './problems.js';

export interface KeySource {
  /** Creates a key unless a valid one is cached. Rejects with the error of the console API. */
  secret(): Promise<string>;
  /** Drops a key that was refused or has spent its limit. */
  forget(): void;
}

interface Failed {
  readonly kind: 'failed';
  readonly status: number | null;
  readonly problem: Problem;
}

/** `send` performs the request with the given key. */
export async function sendWithKey<Outcome extends { readonly kind: string }>(
  key: KeySource,
  send: (secret: string) => Promise<Outcome | Failed>,
): Promise<Outcome | Failed> {
  for (let tries = 1; ; tries++) {
    let secret: string;
    try {
      secret = await key.secret();
    } catch (error) {
      return { kind: 'failed', status: null, problem: problemFromKeyError(error) };
    }
    const outcome = await send(secret);
    const refused = outcome.kind === 'failed' && ((outcome as Failed).status === 401 || (outcome as Failed).status === 402);
    if (refused) key.forget();
    if (!refused || (outcome as Failed).status !== 401 || tries > 1) return outcome;
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
