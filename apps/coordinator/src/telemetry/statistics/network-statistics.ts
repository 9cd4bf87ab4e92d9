/**
 * The network's statistics (spec: network stats): what was counted over its lifetime and in the last half hour, and who is
 * connected at this moment. Pure apart from looking at the fleet.
 */

import type { ProviderSnapshot, Stats } from '@inference/formats';
import type { ActivitySums, MinuteSums } from '../../database/usage/statistics-repository.js';
import type { ProviderRegistry } from '../../providers/provider-registry.js';
import type { OnlineSession } from '../../providers/session/provider-session.js';

/** What the statistics look at in the fleet. */
export type FleetView = Pick<ProviderRegistry, 'sessions' | 'listing' | 'status'>;

/** Buckets of the time series, one per minute. */
const SERIES_MINUTES = 30;
const MINUTE_MS = 60_000;
const NOTHING = { requests: 0, promptTokens: 0, completionTokens: 0 };

/** First millisecond of the time series that ends with the minute of `now`. */
export function seriesStart(now: number): number {
  return (Math.floor(now / MINUTE_MS) - (SERIES_MINUTES - 1)) * MINUTE_MS;
}

/** `minutes` may lack minutes in which nothing happened, and may reach further back than the series. */
export function networkStats(fleet: FleetView, lifetime: ActivitySums, minutes: readonly MinuteSums[], now: number): Stats {
  const sessions = [...fleet.sessions()];
  const { models, namesOf } = fleet.listing();
  const total = (of: (session: OnlineSession) => number): number => sessions.reduce((sum, session) => sum + of(session), 0);
  const tokens = lifetime.promptTokens + lifetime.completionTokens;
  return {
    total_requests: lifetime.requests,
    total_prompt_tokens: lifetime.promptTokens,
    total_completion_tokens: lifetime.completionTokens,
    total_tokens: tokens,
    avg_tokens_per_request: lifetime.requests === 0 ? 0 : tokens / lifetime.requests,
    active_providers: sessions.length,
    total_gpu_cores: total(({ registration }) => registration.hardware.gpu_cores),
    total_cpu_cores: total(({ registration }) => registration.hardware.cpu_cores),
    total_memory_gb: total(({ registration }) => registration.memoryGb),
    // A sum of tenths shall look like one.
    total_bandwidth_gbs: Math.round(total(({ registration }) => registration.hardware.bandwidth_gbs) * 100) / 100,
    providers: sessions.map((session) => snapshot(fleet, session, namesOf(session))),
    models: models.map(({ offer, sessions: serving }) => ({ id: offer.id, providers: serving.length })),
    time_series: timeSeries(minutes, now),
  };
}

function snapshot(fleet: FleetView, session: OnlineSession, models: string[]): ProviderSnapshot {
  const { identity, hardware, memoryGb } = session.registration;
  return {
    id: identity.providerId,
    chip: identity.attestation.chip_name,
    chip_family: hardware.chip_family,
    memory_gb: memoryGb,
    gpu_cores: hardware.gpu_cores,
    status: fleet.status(session),
    trust_level: session.trust().level ?? 'self_signed',
    decode_tps: session.statistics.decodeTps ?? 0,
    requests_served: session.statistics.requestsServed,
    tokens_generated: session.statistics.tokensGenerated,
    models,
    current_model: session.currentModel ?? '',
  };
}

function timeSeries(minutes: readonly MinuteSums[], now: number): Stats['time_series'] {
  const counted = new Map(minutes.map((minute) => [minute.minute, minute]));
  const start = seriesStart(now);
  return Array.from({ length: SERIES_MINUTES }, (_, index) => {
    const minute = start + index * MINUTE_MS;
    const { requests, promptTokens, completionTokens } = counted.get(minute) ?? NOTHING;
    return {
      timestamp: new Date(minute).toISOString().replace('.000Z', 'Z'),
      requests,
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      total_tokens: promptTokens + completionTokens,
    };
  });
}
