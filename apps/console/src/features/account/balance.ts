/** Balance query, and the common key prefix of an account's queries about balance, deposits, usage and API keys. */
import type { ConsoleBalance } from '@inference/formats';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { api } from '../../api/api-client.js';

export const MONEY_KEY = ['money'] as const;

export function useBalance() {
  return useQuery({
    queryKey: [...MONEY_KEY, 'balance'],
    queryFn: ({ signal }) => api.get<ConsoleBalance>('/console/v1/balance', { signal }),
    refetchInterval: 30_000,
  });
}

/** Returns a function to call after a change of the balance or keys: refetches all queries under {@link MONEY_KEY}. */
export function useInvalidateMoney(): () => Promise<void> {
  const queryClient = useQueryClient();
  return () => queryClient.invalidateQueries({ queryKey: MONEY_KEY });
}
