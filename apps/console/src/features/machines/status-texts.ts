/** Labels and texts for the status codes of machines. An unknown code, of a newer coordinator, is shown with spaces for underscores. */
import type { ProviderStatusCode } from '@inference/protocol';
import type { Tone } from '../../ui/feedback/note.js';
import { STATE_LABELS } from '../trust/labels.js';

export interface StatusLabel {
  readonly label: string;
  readonly tone: Tone;
}

function labelLookup(known: Readonly<Record<string, StatusLabel>>): (code: string) => StatusLabel {
  return (code) => known[code] ?? { label: humanizeCode(code), tone: 'neutral' };
}

function textLookup(known: Readonly<Record<string, string>>): (code: string) => string {
  return (code) => known[code] ?? humanizeCode(code);
}

/** Status of a connected machine. */
export const statusLabel = labelLookup({
  online: { label: 'Accepting requests', tone: 'good' },
  draining: { label: 'Draining', tone: 'warn' },
  quarantined: { label: 'Quarantined', tone: 'bad' },
  cooling_down: { label: 'In backoff after failures', tone: 'warn' },
  untrusted: { label: 'Not trusted', tone: 'bad' },
  below_min_trust_level: { label: 'Trust level too low', tone: 'bad' },
  low_battery: { label: 'Low battery', tone: 'warn' },
  key_expired: { label: 'Key has expired', tone: 'bad' },
  away: { label: 'Not accepting requests', tone: 'neutral' },
} satisfies Readonly<Record<ProviderStatusCode, StatusLabel>>);

export const NOT_CONNECTED: StatusLabel = { label: 'Not connected', tone: 'neutral' };

/** Reason why a machine or model gets no job now. */
export const gateText = textLookup({
  no_free_slot: 'Busy: all slots in use',
  held_off: 'Reported full; short pause',
  on_probation: 'On probation: one request at a time until one succeeds',
  cooling_down: 'In backoff after failed requests',
  too_hot: 'Too hot',
  no_memory: 'Out of memory',
  low_battery: 'Low battery',
  quarantined: 'Quarantined',
  draining: 'Draining',
  key_expired: 'Key has expired',
  untrusted: 'Not trusted',
  below_min_trust_level: 'Trust level too low for this network',
  away: 'Not accepting requests',
});

export const partLabel = textLookup({
  attestation: 'Attestation',
  enclave: 'Secure Enclave',
  posture: 'System protections',
  challenge: 'Challenges',
  sealing_key: 'Sealing key',
  device_management: 'Device management',
  device_identity: 'Device identity',
  device_chain: 'Apple certificate',
  key_binding: 'Key binding',
});

export const partStateLabel = labelLookup(STATE_LABELS);

export const outcomeLabel = labelLookup({
  chosen: { label: 'Chosen', tone: 'good' },
  not_chosen: { label: 'Not chosen', tone: 'neutral' },
  gate: { label: 'Unavailable', tone: 'warn' },
  not_eligible: { label: 'Not eligible', tone: 'neutral' },
});

export const modelStateText = textLookup({ ready: 'Loaded', loading: 'Loading', on_demand: 'Loads on demand' });

const DISCONNECT_TEXTS: Readonly<Record<string, string>> = {
  stopped: 'The agent was stopped on the Mac.',
  closed: 'The connection was lost: the Mac sleeps, is offline, or its agent ended.',
  replaced: 'The machine reconnected.',
  shutting_down: 'The coordinator was stopped or restarted.',
};

/** Reason why a session ended. */
export function disconnectText(code: string): string {
  return DISCONNECT_TEXTS[code] ?? `The coordinator ended the connection: ${humanizeCode(code)}.`;
}

const CONDITIONS: Readonly<Record<string, string>> = {
  nominal: 'cool',
  fair: 'warm',
  serious: 'hot',
  critical: 'critical',
  normal: 'enough memory',
  warning: 'short of memory',
  mains: 'on mains',
  battery: 'on battery',
  low_battery: 'battery is low',
};

/** Condition of the host, such as `cool, enough memory, on mains`. */
export function hostConditionText(host: { readonly thermal: string; readonly memory_pressure: string; readonly power: string }): string {
  const memory =
    host.memory_pressure === 'critical' ? 'out of memory' : (CONDITIONS[host.memory_pressure] ?? humanizeCode(host.memory_pressure));
  const thermal = host.thermal === 'critical' ? 'too hot' : (CONDITIONS[host.thermal] ?? humanizeCode(host.thermal));
  return [thermal, memory, CONDITIONS[host.power] ?? humanizeCode(host.power)].join(', ');
}

export function humanizeCode(code: string): string {
  return code.replaceAll('_', ' ');
}
