/** `OpenIncidents`: shows the incident banner on every page except the status page, while a major or critical incident is open. */
import type { NetworkStatus } from '@inference/formats';
import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense } from 'react';
import { useLocation } from 'wouter';
import { api } from '../api/api-client.js';
import { PATHS } from '../routing/paths.js';

const REFRESH_MS = 120_000;

export function OpenIncidents() {
  const [location] = useLocation();
  const { data } = useQuery({
    queryKey: ['public', 'open-incidents'],
    // Without days and models, the response is small.
    queryFn: ({ signal }) => api.get<NetworkStatus>('/v1/network/status', { query: { days: 0, limit: 0 }, signal }),
    staleTime: REFRESH_MS,
    refetchInterval: REFRESH_MS,
    retry: false,
  });
  const severe = data?.open_incidents.filter(({ impact }) => impact === 'major' || impact === 'critical') ?? [];
  if (severe.length === 0 || location === PATHS.status) return null;
  return (
    <Suspense fallback={null}>
      <IncidentBanner incidents={severe} />
    </Suspense>
  );
}

/** Loaded only while an incident is open. */
const IncidentBanner = lazy(() =>
  import('./incident-banner.js').then(
    ({ IncidentBanner: Loaded }) => ({ default: Loaded }),
    () => ({ default: () => null }),
  ),
);
