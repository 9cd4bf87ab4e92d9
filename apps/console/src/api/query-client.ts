/** Query defaults: failed requests are retried twice, refused requests never. */
import { QueryClient } from '@tanstack/react-query';
import { ApiError } from './api-error.js';

const MAX_TRIES = 2;

export function createQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 10_000,
        retry: (failures, error) => failures < MAX_TRIES && isRetryable(error),
        retryDelay: (attempt, error) =>
          error instanceof ApiError && error.retryAfter !== null ? 1000 * error.retryAfter : 500 * 2 ** attempt,
      },
      // `always`: without a network a mutation fails at once instead of pausing. `gcTime` 0: variables may contain passwords.
      mutations: { retry: false, networkMode: 'always', gcTime: 0 },
    },
  });
}

/** Whether a retry may succeed soon. A `retry-after` above 5 s is left to the user. */
function isRetryable(error: unknown): boolean {
  if (!(error instanceof ApiError)) return true;
  return error.status >= 500 && (error.retryAfter ?? 0) <= 5;
}
