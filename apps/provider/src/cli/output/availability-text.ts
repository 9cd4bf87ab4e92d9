/** Whether a provider serves, as its owner reads it. Pure. */
import type { AvailabilityStatus } from '../../control/daemon-status.js';

/** One line, and one for each further reason. */
export function availabilityLines({ state, reasons }: AvailabilityStatus): string[] {
  if (state === 'serving') return ['It serves.'];
  const head = state === 'leaving' ? 'It finishes what it has and takes no more jobs.' : 'It takes no jobs.';
  return [head, ...reasons.map(({ text }) => text)];
}

/** In one entry of `status`. */
export function availabilitySummary(availability: AvailabilityStatus | null): string {
  if (availability === null) return 'not yet: the provider is starting';
  const awake = availability.keeps_awake ? ', and kept from going to sleep by itself' : '';
  return availability.state === 'serving' ? `yes${awake}` : availabilityLines(availability).join(' ');
}
