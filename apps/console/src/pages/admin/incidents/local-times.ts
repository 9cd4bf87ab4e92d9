/** Values of `datetime-local` inputs, which are in the operator's time zone. */

const UTC = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' });

/** `2026-11-26T09:30` for an ISO 8601 time. */
export function toLocalInput(iso: string): string {
  const date = new Date(iso);
  const two = (value: number): string => String(value).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day}T${two(date.getHours())}:${two(date.getMinutes())}`;
}

/** ISO 8601 in UTC; null: no complete time. */
export function fromLocalInput(value: string): string | null {
  const date = new Date(value);
  return value === '' || Number.isNaN(date.getTime()) ? null : date.toISOString();
}

/** The same time in UTC, below the input. */
export function utcHint(value: string): string {
  const iso = fromLocalInput(value);
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return iso === null ? `In your time zone, ${zone}.` : `${UTC.format(new Date(iso))} UTC. Your time zone: ${zone}.`;
}
