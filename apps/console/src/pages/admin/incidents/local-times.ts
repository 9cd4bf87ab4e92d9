/** Converts times for inputs of type `datetime-local`, whose values are in the browser's time zone. */

const UTC = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' });

/** Converts an ISO 8601 time to an input value such as `2026-11-26T09:30`. Seconds are part of the value unless they are zero. */
export function toLocalInput(iso: string): string {
  const date = new Date(iso);
  const two = (value: number): string => String(value).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const minute = `${day}T${two(date.getHours())}:${two(date.getMinutes())}`;
  // Without trailing zeros, as browsers normalize the value.
  const seconds = `${two(date.getSeconds())}${String(date.getMilliseconds() / 1000).slice(1)}`;
  return seconds === '00' ? minute : `${minute}:${seconds}`;
}

/**
 * Converts an input value to an ISO 8601 time in UTC. Null: the value is incomplete.
 *
 * @param initial Time that the input showed first. Returned if the value is unchanged, because one hour a year is ambiguous.
 */
export function fromLocalInput(value: string, initial: string | null = null): string | null {
  if (initial !== null && value === toLocalInput(initial)) return initial;
  const date = new Date(value);
  return value === '' || Number.isNaN(date.getTime()) ? null : date.toISOString();
}

/** Hint below an input: the same time in UTC, and the name of the browser's time zone. */
export function utcHint(value: string): string {
  const iso = fromLocalInput(value);
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return iso === null ? `In your time zone, ${zone}.` : `${UTC.format(new Date(iso))} UTC. Your time zone: ${zone}.`;
}
