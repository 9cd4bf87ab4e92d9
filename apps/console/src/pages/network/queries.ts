/** Queries of the public network pages, and their refresh intervals. */
import type { Leaderboard, LeaderboardMetric, StatisticsWindow, Stats, Totals } from '@inference/formats';
import type { AttestationFeed } from '@inference/protocol';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { api } from '../../api/api-client.js';

/** Half of the minute for which the coordinator caches statistics, so that new values appear within 30 seconds. */
const STATS_MS = 30_000;

export function useStats() {
  return useQuery({
    queryKey: ['public', 'stats'],
    queryFn: ({ signal }) => api.get<Stats>('/v1/stats', { signal }),
    refetchInterval: STATS_MS,
  });
}

export function useTotals(window: StatisticsWindow) {
  return useQuery({
    queryKey: ['public', 'totals', window],
    queryFn: ({ signal }) => api.get<Totals>('/v1/network/totals', { query: { window }, signal }),
    refetchInterval: 60_000,
    placeholderData: keepPreviousData,
  });
}

/** Maximum entries that the leaderboard API returns. */
export const LEADERBOARD_ENTRIES = 200;

export function useLeaderboard(metric: LeaderboardMetric, window: StatisticsWindow) {
  return useQuery({
    queryKey: ['public', 'leaderboard', metric, window],
    queryFn: ({ signal }) => api.get<Leaderboard>('/v1/leaderboard', { query: { metric, window, limit: LEADERBOARD_ENTRIES }, signal }),
    staleTime: 60_000,
    placeholderData: keepPreviousData,
  });
}

/** Attestation feed with the record of one provider. Has no record if the provider is not connected. */
export function useFeedOf(providerId: string) {
  return useQuery({ queryKey: ['public', 'attestation', providerId], queryFn: ({ signal }) => downloadFeed(providerId, signal) });
}

export function downloadFeed(providerId: string, signal?: AbortSignal): Promise<AttestationFeed> {
  return api.get('/v1/providers/attestation', { query: { provider_id: providerId }, signal });
}
