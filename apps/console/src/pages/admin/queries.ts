/** Queries of the operators' pages, and their refresh intervals. */
import type {
  AdminAccount,
  AdminAccountView,
  AdminAction,
  AdminCatalogue,
  AdminDepositPage,
  AdminEarningsConcentration,
  AdminHealth,
  AdminHealthHistory,
  AdminPriceHistory,
  AdminPriceList,
  AdminProviderList,
  AdminProviderView,
  AdminRolloutList,
  ConsoleWithdrawal,
  Incident,
} from '@inference/formats';
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query';
import { api, type QueryValue } from '../../api/api-client.js';
import { usePaginatedQuery } from '../../api/paginated-query.js';
import { machineRefreshMs } from '../../features/machines/machine-refresh.js';
import { useToast } from '../../ui/feedback/toast.js';

const ADMIN_KEY = ['admin'] as const;
/** Refresh intervals in milliseconds. */
const LIVE_MS = 5000;
const HISTORY_MS = 30_000;

/** Returns a function that shows a toast and refetches the shown data of operators' pages. Call the function after a change. */
export function useToastAndRefetch(): (done: string) => Promise<void> {
  const queryClient = useQueryClient();
  const toast = useToast();
  return async (done) => {
    toast.success(done);
    await queryClient.invalidateQueries({ queryKey: ADMIN_KEY });
  };
}

export function useHealth() {
  return useQuery({
    queryKey: [...ADMIN_KEY, 'health'],
    queryFn: ({ signal }) => api.get<AdminHealth>('/admin/v1/health', { signal }),
    refetchInterval: LIVE_MS,
  });
}

/** Time series of health figures. New points appear once per minute at most. */
export function useHealthHistory(range: AdminHealthHistory['range']) {
  return useQuery({
    queryKey: [...ADMIN_KEY, 'health-history', range],
    queryFn: ({ signal }) => api.get<AdminHealthHistory>(`/admin/v1/health/history?range=${range}`, { signal }),
    refetchInterval: HISTORY_MS,
    placeholderData: keepPreviousData,
  });
}

export function useProviders() {
  return useQuery({
    queryKey: [...ADMIN_KEY, 'providers', 'list'],
    queryFn: ({ signal }) => api.get<AdminProviderList>('/admin/v1/providers', { signal }),
    refetchInterval: LIVE_MS,
  });
}

export function providerPath(id: string): string {
  return `/admin/v1/providers/${encodeURIComponent(id)}`;
}

export function useProvider(id: string) {
  return useQuery({
    queryKey: [...ADMIN_KEY, 'providers', 'one', id],
    queryFn: ({ signal }) => api.get<AdminProviderView>(providerPath(id), { signal }),
    refetchInterval: ({ state }) => machineRefreshMs(state.error, LIVE_MS),
  });
}

export function usePrices() {
  return useQuery({
    queryKey: [...ADMIN_KEY, 'prices', 'list'],
    queryFn: ({ signal }) => api.get<AdminPriceList>('/admin/v1/prices', { signal }),
  });
}

/** Escapes slashes, which model ids may contain. */
export function pricePath(model: string): string {
  return `/admin/v1/prices/${encodeURIComponent(model)}`;
}

export function usePriceHistory(model: string) {
  return useQuery({
    queryKey: [...ADMIN_KEY, 'prices', 'one', model],
    queryFn: ({ signal }) => api.get<AdminPriceHistory>(pricePath(model), { signal }),
  });
}

export function useCatalogue() {
  return useQuery({
    queryKey: [...ADMIN_KEY, 'catalogue'],
    queryFn: ({ signal }) => api.get<AdminCatalogue>('/admin/v1/catalogue', { signal }),
  });
}

export function cataloguePath(model: string): string {
  return `/admin/v1/catalogue/${encodeURIComponent(model)}`;
}

export function accountPath(id: string): string {
  return `/admin/v1/accounts/${encodeURIComponent(id)}`;
}

export function useAccount(id: string) {
  return useQuery({
    queryKey: [...ADMIN_KEY, 'accounts', 'one', id],
    queryFn: ({ signal }) => api.get<AdminAccountView>(accountPath(id), { signal }),
  });
}

const PAGE_ROWS = 50;

function useAdminList<Row>(path: string, key: string, query: Readonly<Record<string, QueryValue>>) {
  return usePaginatedQuery<Row>([...ADMIN_KEY, key, 'list', query], path, { ...query, limit: PAGE_ROWS });
}

export function useAccounts(search: string) {
  return useAdminList<AdminAccount>('/admin/v1/accounts', 'accounts', { search: search === '' ? null : search });
}

export function useDeposits(accountId: string | null) {
  return useAdminList<AdminDepositPage['data'][number]>('/admin/v1/deposits', 'deposits', { account_id: accountId });
}

export function useAdminWithdrawals(state: string | null, accountId: string | null) {
  return useAdminList<ConsoleWithdrawal>('/admin/v1/withdrawals', 'withdrawals', { state, account_id: accountId });
}

export function useEarningsConcentration() {
  return useQuery({
    queryKey: [...ADMIN_KEY, 'earnings', 'concentration'],
    queryFn: ({ signal }) => api.get<AdminEarningsConcentration>('/admin/v1/earnings/concentration', { signal }),
  });
}

export function useActions(subject: string | null) {
  return useAdminList<AdminAction>('/admin/v1/actions', 'actions', { subject });
}

export function useIncidents() {
  return useAdminList<Incident>('/admin/v1/incidents', 'incidents', {});
}

export function useRollouts() {
  return useQuery({
    queryKey: [...ADMIN_KEY, 'rollouts'],
    queryFn: ({ signal }) => api.get<AdminRolloutList>('/admin/v1/rollouts', { signal }),
    refetchInterval: LIVE_MS,
  });
}

export function rolloutPath(version: string): string {
  return `/admin/v1/rollouts/${encodeURIComponent(version)}`;
}

export function incidentPath(id: string): string {
  return `/admin/v1/incidents/${encodeURIComponent(id)}`;
}
