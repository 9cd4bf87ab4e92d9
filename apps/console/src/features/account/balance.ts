/** Balance query, and the key prefix of all queries that depend on money: a payment invalidates them together. */
import type { ConsoleBalance } from '@inference/formats';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { api } from '../../api/api-client.js';

export const MONEY = ['money'] as const;

export function useBalance() {
  return useQuery({
    queryKey: [...MONEY, 'balance'],
    queryFn: ({ signal }) => api.get<ConsoleBalance>('/console/v1/balance', { signal }),
    refetchInterval: 30_000,
  });
}

/** To be called when money has moved. */
export function useMoneyChanged(): () => Promise<void> {
  const queryClient = useQueryClient();
  return () => queryClient.invalidateQueries({ queryKey: MONEY });
}
