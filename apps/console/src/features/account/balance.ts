/** Balance query, and the key prefix that all queries about money share. A payment invalidates them together. */
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

/** Call after a change of the balance. */
export function useInvalidateMoney(): () => Promise<void> {
  const queryClient = useQueryClient();
  return () => queryClient.invalidateQueries({ queryKey: MONEY_KEY });
}
