/** `useBalance`, and the key prefix of queries to refetch after a change of balance or API keys. */
import type { ConsoleBalance } from '@inference/formats';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { api } from '../../api/api-client.js';

/** Prefix of the React Query keys for balance, deposits, billing details, first steps, usage and API keys. */
export const BILLING_QUERY_KEY = ['billing'] as const;

export function useBalance() {
  return useQuery({
    queryKey: [...BILLING_QUERY_KEY, 'balance'],
    queryFn: ({ signal }) => api.get<ConsoleBalance>('/console/v1/balance', { signal }),
    refetchInterval: 30_000,
  });
}

/** Returns a function that refetches the shown queries under {@link BILLING_QUERY_KEY}. */
export function useInvalidateBilling(): () => Promise<void> {
  const queryClient = useQueryClient();
  return () => queryClient.invalidateQueries({ queryKey: BILLING_QUERY_KEY });
}
