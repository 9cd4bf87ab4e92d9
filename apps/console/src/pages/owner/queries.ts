/** Queries of the owner pages and their refresh intervals. */
import type { ConsoleDeviceCode, ConsoleEarningDays, ConsoleMachineList, ConsoleMachineView, ConsoleWithdrawal } from '@inference/formats';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { api } from '../../api/api-client.js';
import { usePaginatedQuery } from '../../api/paginated-query.js';
import type { DayRange } from '../../features/account/utc-days.js';
import { machineRefreshMs } from '../../features/machines/machine-refresh.js';

export const MACHINES_KEY = ['machines'] as const;
export const EARNINGS_KEY = ['earnings'] as const;
const MACHINES_PATH = '/console/v1/machines';
/** Refresh intervals in milliseconds: of the list, of one machine, of earnings. */
const LIST_MS = 5000;
const MACHINE_MS = 3000;
const EARNINGS_MS = 30_000;

export function useMachines() {
  return useQuery({
    queryKey: [...MACHINES_KEY, 'list'],
    queryFn: ({ signal }) => api.get<ConsoleMachineList>(MACHINES_PATH, { signal }),
    refetchInterval: LIST_MS,
  });
}

export function machinePath(id: string): string {
  return `${MACHINES_PATH}/${encodeURIComponent(id)}`;
}

export function machineKey(id: string): readonly string[] {
  return [...MACHINES_KEY, 'one', id];
}

export function useMachine(id: string) {
  return useQuery({
    queryKey: machineKey(id),
    queryFn: ({ signal }) => api.get<ConsoleMachineView>(machinePath(id), { signal }),
    refetchInterval: ({ state }) => machineRefreshMs(state.error, MACHINE_MS),
  });
}

export function useEarnings({ from, to }: DayRange) {
  return useQuery({
    queryKey: [...EARNINGS_KEY, 'days', from, to],
    queryFn: ({ signal }) => api.get<ConsoleEarningDays>('/console/v1/earnings/days', { query: { from, to }, signal }),
    refetchInterval: EARNINGS_MS,
    placeholderData: keepPreviousData,
  });
}

export function useWithdrawals() {
  return usePaginatedQuery<ConsoleWithdrawal>([...EARNINGS_KEY, 'withdrawals'], '/console/v1/withdrawals', { limit: 20 });
}

export function deviceCodePath(code: string): string {
  return `/console/v1/device-codes/${encodeURIComponent(code)}`;
}

export function useDeviceCode(code: string) {
  return useQuery({
    queryKey: ['device-code', code],
    queryFn: ({ signal }) => api.get<ConsoleDeviceCode>(deviceCodePath(code), { signal }),
    staleTime: 0,
    gcTime: 0,
    // The coordinator counts each lookup of an unknown code as a guess.
    retry: false,
  });
}
