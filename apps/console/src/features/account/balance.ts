/** Balance query, and the common key prefix of an account's queries about balance, deposits, usage and API keys. */
import type { ConsoleBalance } from '@inference/formats';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { api } from '../../api/api-client.js';

export const BILLING_QUERY_KEY = ['billing'] as const;

export function useBalance() {
  return useQuery({
    queryKey: [...BILLING_QUERY_KEY, 'balance'],
    queryFn: ({ signal }) => api.get<ConsoleBalance>('/console/v1/balance', { signal }),
    refetchInterval: 30_000,
  });
}

/** Returns a function to call after a change of the balance or keys: refetches all queries under {@link BILLING_QUERY_KEY}. */
export function useInvalidateBilling(): () => Promise<void> {
  const queryClient = useQueryClient();
  return () => queryClient.invalidateQueries({ queryKey: BILLING_QUERY_KEY });
}
