/** `usePlaygroundKey`: API key of the playground, stored only in memory. `sendWithKey`: sends a request with the key. */
import type { ConsolePlaygroundKey } from '@inference/formats';
import { type QueryClient, useQueryClient } from '@tanstack/react-query';
import { useMemo } from 'react';
import { api } from '../../../api/api-client.js';
import { ApiError } from '../../../api/api-error.js';
import { CONNECTION_LOST, type Problem, problemFromFailure, type RequestFailure } from './problems.js';

const KEY = ['playground-key'] as const;
/** Time for which a key is reused. The coordinator accepts the key for one hour. */
const FRESH_MS = 55 * 60_000;

export function usePlaygroundKey(): KeySource {
  const queryClient = useQueryClient();
  return useMemo(() => playgroundKey(queryClient), [queryClient]);
}

function playgroundKey(queryClient: QueryClient): KeySource {
  return {
    async secret() {
      const { secret } = await queryClient.fetchQuery({
        queryKey: KEY,
        queryFn: () => api.post<ConsolePlaygroundKey>('/console/v1/playground-key'),
        staleTime: FRESH_MS,
        gcTime: FRESH_MS,
      });
      return secret;
    },
    forget: () => queryClient.removeQueries({ queryKey: KEY }),
  };
}

export interface KeySource {
  /** Creates a key unless a valid key is cached. Rejects with the error of the console API. */
  secret(): Promise<string>;
  /** Drops the cached key, so that the next request creates another. */
  forget(): void;
}

/** Members of an outcome that show whether the key was refused. `status`: see {@link RequestFailure}. */
interface Sent {
  readonly kind: string;
  readonly status?: number | null;
}

/** Calls `send` with the playground key, and once more with a new key after status 401. */
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
    // 402: the key has spent its limit, or the balance is too low.
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
