/** Words a provider's own word on whether it takes jobs. The sentences are the coordinator's, by a closed list of codes. Pure. */
import type { AwayReason, ProviderStatusAnswer, ReportedAvailability } from '@inference/protocol';

const REASONS: Readonly<Record<AwayReason, string>> = {
  paused: 'It is paused by its owner. `resume` ends that.',
  outside_schedule: 'Its schedule is closed.',
  owner_active: 'Somebody uses the machine, and it serves only while nobody does.',
  idle_unknown: 'It serves only while nobody uses the machine, which it cannot tell. Take only_when_idle_minutes out of its configuration.',
  on_battery: 'It runs on battery. Connect it to power.',
  low_battery: 'Its battery is low. Connect it to power.',
  too_hot: 'It is too hot. Give it air, or run less beside it.',
  no_memory: 'It is out of memory. Close programs, or serve a smaller model.',
};
const UNKNOWN = 'It takes no jobs for now, for a reason that this coordinator does not know.';
/** Of these nothing but themselves is known. */
const known = new Map<string, string>(Object.entries(REASONS));

export function availabilityBody({ state, reason, until }: ReportedAvailability): NonNullable<ProviderStatusAnswer['availability']> {
  if (state === 'serving') return { state, reason: null, text: null, until: null };
  const text = (reason === undefined ? undefined : known.get(reason)) ?? UNKNOWN;
  return { state, reason: reason ?? null, text, until: until === undefined ? null : new Date(until).toISOString() };
}
