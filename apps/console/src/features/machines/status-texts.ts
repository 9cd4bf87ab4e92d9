/** Display texts for codes of the coordinator. Unknown codes are shown with spaces instead of underscores. */
import type { Tone } from '../../ui/feedback/note.js';

export interface StatusLabel {
  readonly label: string;
  readonly tone: Tone;
}

const STATUS: Readonly<Record<string, StatusLabel>> = {
  online: { label: 'Accepting jobs', tone: 'good' },
  draining: { label: 'Draining', tone: 'warn' },
  quarantined: { label: 'Quarantined', tone: 'bad' },
  cooling_down: { label: 'In backoff after failures', tone: 'warn' },
  untrusted: { label: 'Not trusted', tone: 'bad' },
  below_min_trust_level: { label: 'Trust level too low', tone: 'bad' },
  low_battery: { label: 'Low battery', tone: 'warn' },
  key_expired: { label: 'Key has expired', tone: 'bad' },
  away: { label: 'Away', tone: 'neutral' },
};

/** Status of a connected machine. */
export function statusLabel(status: string): StatusLabel {
  return STATUS[status] ?? { label: humanizeCode(status), tone: 'neutral' };
}

export const NOT_CONNECTED: StatusLabel = { label: 'Not connected', tone: 'neutral' };

const GATES: Readonly<Record<string, string>> = {
  no_free_slot: 'Busy: all slots in use',
  held_off: 'Reported full; short pause',
  on_probation: 'On probation: one job at a time until one succeeds',
  cooling_down: 'In backoff after failed jobs',
  too_hot: 'Too hot',
  no_memory: 'Out of memory',
  low_battery: 'Low battery',
  quarantined: 'Quarantined',
  draining: 'Draining',
  key_expired: 'Its key has expired',
  untrusted: 'Not trusted',
  below_min_trust_level: 'Trust level too low for this network',
  away: 'Away',
};

/** Reason why the machine gets no job now. */
export function gateText(gate: string): string {
  return GATES[gate] ?? humanizeCode(gate);
}

const PARTS: Readonly<Record<string, string>> = {
  attestation: 'Attestation',
  enclave: 'Secure Enclave',
  posture: 'System protections',
  challenge: 'Challenges',
  sealing_key: 'Sealing key',
  device_management: 'Device management',
  device_identity: 'Device identity',
  device_chain: 'Apple certificate',
  key_binding: 'Key binding',
};

export function partLabel(name: string): string {
  return PARTS[name] ?? humanizeCode(name);
}

const PART_STATES: Readonly<Record<string, StatusLabel>> = {
  ok: { label: 'Passed', tone: 'good' },
  missing: { label: 'Missing', tone: 'neutral' },
  stale: { label: 'Expired', tone: 'warn' },
  failed: { label: 'Failed', tone: 'bad' },
};

export function partStateLabel(state: string): StatusLabel {
  return PART_STATES[state] ?? { label: humanizeCode(state), tone: 'neutral' };
}

const LEVELS: Readonly<Record<string, StatusLabel>> = {
  hardware: { label: 'Hardware', tone: 'good' },
  self_signed: { label: 'Self-signed', tone: 'accent' },
  none: { label: 'None', tone: 'bad' },
};

export function trustLevelLabel(level: string): StatusLabel {
  return LEVELS[level] ?? { label: humanizeCode(level), tone: 'neutral' };
}

const OUTCOMES: Readonly<Record<string, StatusLabel>> = {
  chosen: { label: 'Chosen', tone: 'good' },
  not_chosen: { label: 'Not chosen', tone: 'neutral' },
  gate: { label: 'Excluded', tone: 'warn' },
  not_eligible: { label: 'Not eligible', tone: 'neutral' },
};

export function outcomeLabel(outcome: string): StatusLabel {
  return OUTCOMES[outcome] ?? { label: humanizeCode(outcome), tone: 'neutral' };
}

const MODEL_STATES: Readonly<Record<string, string>> = {
  ready: 'Loaded',
  loading: 'Loading',
  on_demand: 'Loads on demand',
};

export function modelStateText(state: string): string {
  return MODEL_STATES[state] ?? humanizeCode(state);
}

const LEFT: Readonly<Record<string, string>> = {
  closed: 'The machine closed the connection, or it was lost.',
  replaced: 'The machine reconnected.',
  shutting_down: 'The coordinator was restarted.',
};

/** Reason why a session ended. */
export function disconnectText(code: string): string {
  return LEFT[code] ?? `The coordinator ended the connection: ${humanizeCode(code)}.`;
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
