/**
 * `networkStats` builds the body of the public statistics: lifetime sums, requests of the last 30 minutes, connected providers.
 *
 * It combines the parts that `statisticsPart` computes at each coordinator.
 */
import { STATS_SCHEMAS, type Stats } from '@inference/formats';
import { ProviderIdSchema } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import type { ActivitySums, MinuteSums } from '../../database/statistics-repository.js';
import { newestRegistrations } from '../../providers/newest-registrations.js';
import type { ModelDirectory } from '../../providers/placement/model-directory.js';
import type { ProviderSnapshot } from '../../providers/provider-snapshot.js';
import { MINUTE_MS } from '../../time-units.js';

/** Connected providers and their models. */
export interface RegistryView {
  snapshots(): Iterable<ProviderSnapshot>;
  readonly models: Pick<ModelDirectory, 'listing'>;
}

/** Length of the time series, with one bucket per minute. */
const SERIES_MINUTES = 30;
const IDLE_MINUTE = { requests: 0, promptTokens: 0, completionTokens: 0 };

/** Start of the time series that ends with the current minute, in milliseconds since 1970. */
export function seriesStart(now: number): number {
  return (Math.floor(now / MINUTE_MS) - (SERIES_MINUTES - 1)) * MINUTE_MS;
}

/** Providers and models of one coordinator. `shown` is a provider's entry in the body. */
export const StatisticsPartSchema = Type.Object({
  providers: Type.Array(
    Type.Object({
      provider_id: ProviderIdSchema,
      registered_at: Type.Number(),
      cpu_cores: Type.Number({ minimum: 0 }),
      bandwidth_gbs: Type.Number({ minimum: 0 }),
      shown: STATS_SCHEMAS.Stats.properties.providers.items,
    }),
  ),
  models: STATS_SCHEMAS.Stats.properties.models,
});
export type StatisticsPart = Static<typeof StatisticsPartSchema>;
type ProviderPart = StatisticsPart['providers'][number];

export function statisticsPart(registry: RegistryView): StatisticsPart {
  const { models, namesOf } = registry.models.listing();
  return {
    providers: [...registry.snapshots()].map((provider) => {
      const { identity, hardware, registeredAt } = provider.registration;
      return {
        provider_id: identity.providerId,
        registered_at: registeredAt,
        cpu_cores: hardware.cpu_cores,
        bandwidth_gbs: hardware.bandwidth_gbs,
        shown: providerBody(provider, namesOf(provider)),
      };
    }),
    models: models.map(({ offer, providers: serving }) => ({ id: offer.id, providers: serving.length })),
  };
}

/** Combines the parts of all coordinators with database sums. `minutes` may omit idle minutes, and may start before the series. */
export function networkStats(parts: readonly StatisticsPart[], lifetime: ActivitySums, minutes: readonly MinuteSums[], now: number): Stats {
  const providers = newestRegistrations(parts.map((part) => part.providers));
  const total = (of: (provider: ProviderPart) => number): number => providers.reduce((sum, provider) => sum + of(provider), 0);
  const tokens = lifetime.promptTokens + lifetime.completionTokens;
  return {
    total_requests: lifetime.requests,
    total_prompt_tokens: lifetime.promptTokens,
    total_completion_tokens: lifetime.completionTokens,
    total_tokens: tokens,
    avg_tokens_per_request: lifetime.requests === 0 ? 0 : tokens / lifetime.requests,
    active_providers: providers.length,
    total_gpu_cores: total(({ shown }) => shown.gpu_cores),
    total_cpu_cores: total(({ cpu_cores }) => cpu_cores),
    total_memory_gb: total(({ shown }) => shown.memory_gb),
    // Removes the rounding noise of floating-point sums.
    total_bandwidth_gbs: Math.round(total(({ bandwidth_gbs }) => bandwidth_gbs) * 100) / 100,
    providers: providers.map(({ shown }) => shown),
    models: modelsOf(parts),
    time_series: timeSeries(minutes, now),
  };
}

/** Number of providers by model, over all parts, sorted by id. */
function modelsOf(parts: readonly StatisticsPart[]): Stats['models'] {
  const counts = new Map<string, number>();
  for (const { id, providers } of parts.flatMap(({ models }) => models)) counts.set(id, (counts.get(id) ?? 0) + providers);
  return [...counts].map(([id, providers]) => ({ id, providers })).sort((a, b) => (a.id < b.id ? -1 : 1));
}

function providerBody(provider: ProviderSnapshot, models: string[]): Stats['providers'][number] {
  const { statistics } = provider;
  const { identity, hardware, memoryGb } = provider.registration;
  return {
    id: identity.providerId,
    chip: identity.attestation.chip_name,
    chip_family: hardware.chip_family,
    memory_gb: memoryGb,
    gpu_cores: hardware.gpu_cores,
    status: provider.status,
    trust_level: provider.trust.level ?? 'self_signed',
    decode_tps: statistics.decodeTps ?? 0,
    requests_served: statistics.requestsServed,
    tokens_generated: statistics.tokensGenerated,
    models,
    current_model: provider.currentModel ?? '',
  };
}

function timeSeries(minutes: readonly MinuteSums[], now: number): Stats['time_series'] {
  const counted = new Map(minutes.map((minute) => [minute.minute, minute]));
  const start = seriesStart(now);
  return Array.from({ length: SERIES_MINUTES }, (_, index) => {
    const minute = start + index * MINUTE_MS;
    const { requests, promptTokens, completionTokens } = counted.get(minute) ?? IDLE_MINUTE;
    return {
      timestamp: new Date(minute).toISOString().replace('.000Z', 'Z'),
      requests,
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      total_tokens: promptTokens + completionTokens,
    };
  });
}
