/** How data is fetched and kept: what was refused is not asked again, what failed on the way is, twice. */
import { QueryClient } from '@tanstack/react-query';
import { ApiError } from './api-error.js';

const MAX_TRIES = 2;

export function createQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 10_000,
        retry: (failures, error) => failures < MAX_TRIES && mayHelp(error),
        retryDelay: (attempt, error) =>
          error instanceof ApiError && error.retryAfter !== null ? 1000 * error.retryAfter : 500 * 2 ** attempt,
      },
      // `always`: without a network a mutation fails at once instead of pausing. `gcTime` 0: variables may contain passwords.
      mutations: { retry: false, networkMode: 'always', gcTime: 0 },
    },
  });
}

/** Whether the same request may succeed in a moment. A long pause that the coordinator asks for is left to the person. */
function mayHelp(error: unknown): boolean {
  if (!(error instanceof ApiError)) return true;
  return error.status >= 500 && (error.retryAfter ?? 0) <= 5;
}
