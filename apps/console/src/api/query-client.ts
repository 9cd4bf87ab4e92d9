/** Defaults of TanStack Query: retries a query up to twice if {@link isRetryable}, and never a mutation. */
import { QueryClient } from '@tanstack/react-query';
import { ApiError } from './api-error.js';

const MAX_RETRIES = 2;

export function createQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 10_000,
        retry: (failures, error) => failures < MAX_RETRIES && isRetryable(error),
        retryDelay: (attempt, error) =>
          error instanceof ApiError && error.retryAfter !== null ? 1000 * error.retryAfter : 500 * 2 ** attempt,
      },
      // `always`: offline, a mutation fails at once instead of waiting. `gcTime` 0: mutation variables may contain passwords.
      mutations: { retry: false, networkMode: 'always', gcTime: 0 },
    },
  });
}

/** Whether to retry automatically: not after 4xx, and not if `retry-after` exceeds 5 seconds. */
function isRetryable(error: unknown): boolean {
  if (!(error instanceof ApiError)) return true;
  return error.status >= 500 && (error.retryAfter ?? 0) <= 5;
}
