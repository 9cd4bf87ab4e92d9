/** `providerStatus` builds the status that owners and operators see of a connected provider. */
import type { AwayReason, PlacementDecision, ProviderStatusAnswer, ReportedAvailability } from '@inference/protocol';
import type { ProviderEarnings } from '../../../database/earnings-repository.js';
import type { RequestQueue } from '../../../inference/queue/request-queue.js';
import type { LoggedDecision } from '../../../providers/placement/placement-log.js';
import type { ProviderRegistry } from '../../../providers/provider-registry.js';
import type { ProviderSnapshot } from '../../../providers/provider-snapshot.js';
import { trustMessage } from '../../../providers/session/trust-message.js';
import { type Demand, demandOf } from '../../inference/model-parts.js';
import { decisionText } from './decision-text.js';
import { nextSteps } from './next-steps.js';

type ModelStatus = ProviderStatusAnswer['models'][number];

interface StatusInput {
  readonly registry: ProviderRegistry;
  readonly requestQueue: RequestQueue;
  readonly now: number;
  /** Null if the earnings could not be read. */
  readonly earnings: ProviderEarnings | null;
}

export function providerStatus(provider: ProviderSnapshot, { registry, requestQueue, now, earnings }: StatusInput): ProviderStatusAnswer {
  const { identity, slots, registeredAt, agentName, agentVersion } = provider.registration;
  const { statistics } = provider;
  const { host } = statistics;
  const { reports } = registry.placement;
  const trust = trustMessage(provider.trust, provider.status, null, provider.quarantine);
  const facts = {
    object: 'provider.status' as const,
    provider_id: identity.providerId,
    serial_number: identity.attestation.serial_number,
    chip_name: identity.attestation.chip_name,
    agent: { name: agentName, version: agentVersion },
    connected_at: iso(registeredAt),
    server_time: iso(now),
    status: trust.status,
    status_remedy: trust.status_remedy ?? null,
    gate: provider.unavailableReason,
    availability: availabilityBody(provider.availability),
    hardware: { ...provider.registration.hardware, adjusted: [...provider.registration.adjusted] },
    trust_level: trust.trust_level,
    simulated: identity.simulated,
    trust_parts: trust.parts,
    slots,
    running_jobs: provider.usedSlots,
    host: { thermal: host.thermal, memory_pressure: host.memoryPressure, power: host.power },
    measured: { prefill_tps: statistics.prefillTps, decode_tps: statistics.decodeTps },
    models: modelsOf(provider, registry, requestQueue),
    ...reports.share(identity.providerId, null),
    decisions: reports.decisions(identity.providerId).map(decisionOf),
    reputation: reputationOf(registry, provider, now),
    earnings: earnings === null ? null : { of: earnings.of, today_micro_usd: earnings.today, total_micro_usd: earnings.total },
  };
  return { ...facts, next_steps: nextSteps(facts) };
}

/** Replaces the demand of each model, and recomputes the next steps, which depend on the demand. */
export function withDemand(status: ProviderStatusAnswer, demandOfModel: (model: string) => Demand): ProviderStatusAnswer {
  const facts = { ...status, models: status.models.map((model) => ({ ...model, demand: demandBody(demandOfModel(model.id)) })) };
  return { ...facts, next_steps: nextSteps(facts) };
}

function demandBody({ requests_last_5_minutes, waiting_requests, expected_wait_ms }: Demand): ModelStatus['demand'] {
  return { requests_last_5_minutes, waiting_requests, expected_wait_ms: expected_wait_ms === null ? null : Math.round(expected_wait_ms) };
}

function modelsOf(provider: ProviderSnapshot, registry: ProviderRegistry, requestQueue: RequestQueue): ModelStatus[] {
  const { reports } = registry.placement;
  const { providerId } = provider.registration.identity;
  const gate = provider.unavailableReason;
  const speeds = new Map(reports.throughput(providerId).map(({ model, speed }) => [model, speed]));
  return provider.models.map(({ id, state = 'ready' }) => {
    const speed = speeds.get(id);
    return {
      id,
      state,
      routable: gate === null && state !== 'loading',
      gate,
      prefill_tps: roundToTenths(speed?.prefillTps ?? 0),
      decode_tps: roundToTenths(speed?.decodeTps ?? 0),
      measured_jobs: speed?.samples ?? 0,
      ...reports.share(providerId, id),
      demand: demandBody(demandOf(id, registry, requestQueue)),
    };
  });
}

function decisionOf(entry: LoggedDecision): PlacementDecision {
  const { model, verdict, count, firstAt, lastAt, challengedAt } = entry;
  const { outcome, reason, ms } = verdict;
  return {
    model,
    outcome,
    reason,
    text: decisionText(entry),
    ...(reason === 'slower' && ms !== null ? { slower_by_ms: Math.round(ms) } : {}),
    ...(reason === 'held_off' && ms !== null ? { held_off_ms: Math.round(ms) } : {}),
    ...(challengedAt === null ? {} : { challenge_age_ms: Math.max(0, Math.round(lastAt - challengedAt)) }),
    count,
    first_at: iso(firstAt),
    last_at: iso(lastAt),
  };
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}

function roundToTenths(rate: number): number {
  return Math.round(rate * 10) / 10;
}

const AWAY_TEXTS: Readonly<Record<AwayReason, string>> = {
  paused: 'Paused by its owner. On the Mac, "inference-provider resume" ends the pause.',
  outside_schedule: 'Outside the schedule that its owner set.',
  owner_active: 'The Mac is in use, and serves only while idle.',
  idle_unknown: 'The Mac serves only while idle, but cannot detect idleness. Remove only_when_idle_minutes from its configuration.',
  on_battery: 'It runs on battery. Connect it to power.',
  low_battery: 'Its battery is low. Connect it to power.',
  too_hot: 'It is too hot. Improve its cooling, or run fewer other programs.',
  no_memory: 'It is out of memory. Close programs, or serve a smaller model.',
};
const UNKNOWN_AWAY_TEXT = 'Not accepting requests, for a reason that this coordinator does not know.';
/** Agents may report reasons that this version does not know. */
const awayTextByReason = new Map<string, string>(Object.entries(AWAY_TEXTS));

export function availabilityBody({ state, reason, until }: ReportedAvailability): NonNullable<ProviderStatusAnswer['availability']> {
  if (state === 'serving') return { state, reason: null, text: null, until: null };
  const text = (reason === undefined ? undefined : awayTextByReason.get(reason)) ?? UNKNOWN_AWAY_TEXT;
  return { state, reason: reason ?? null, text, until: until === undefined ? null : new Date(until).toISOString() };
}

function reputationOf(registry: ProviderRegistry, provider: ProviderSnapshot, now: number): ProviderStatusAnswer['reputation'] {
  const { state, reason, since, until, recentFailures } = registry.reputations.summaryOf(provider.registration.identity.providerId);
  return {
    state,
    reason,
    since: toIsoTime(since),
    until: toIsoTime(until),
    recent_failures: recentFailures,
    held_off_until: provider.backoffUntil > now ? toIsoTime(provider.backoffUntil) : null,
    refused_in_a_row: provider.backoffCount,
  };
}

function toIsoTime(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
