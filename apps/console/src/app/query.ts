/**
 * How data is fetched and kept: what was refused is not asked again, what failed on the way is, twice. When an answer says that
 * nobody is signed in any more, the session is asked for again, which leads whoever needs one to sign in.
 */
import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { ApiError } from './api-error.js';

/** Key of who is signed in. */
export const SESSION_KEY = ['session'] as const;

const MOST_TRIES = 2;

export function createQueryClient(): QueryClient {
  const onError = (error: unknown): void => {
    if (error instanceof ApiError && error.code === 'not_signed_in') void client.invalidateQueries({ queryKey: SESSION_KEY });
  };
  const client = new QueryClient({
    queryCache: new QueryCache({ onError }),
    mutationCache: new MutationCache({ onError }),
    defaultOptions: {
      queries: {
        staleTime: 10_000,
        retry: (failures, error) => failures < MOST_TRIES && mayHelp(error),
        retryDelay: (attempt, error) =>
          error instanceof ApiError && error.retryAfter !== null ? 1000 * error.retryAfter : 500 * 2 ** attempt,
      },
      mutations: { retry: false },
    },
  });
  return client;
}

/** Whether the same request may succeed in a moment. A long pause that the coordinator asks for is left to the person. */
function mayHelp(error: unknown): boolean {
  if (!(error instanceof ApiError)) return true;
  return error.status >= 500 && (error.retryAfter ?? 0) <= 5;
}
