/** Points in time as clients write them in a query: a date, which is its first moment in UTC, or a time with its zone. */
import { RequestError } from '@inference/formats';
import { TIME_DESCRIPTION } from '../billing/payment-schemas.js';

/** Milliseconds of a text that fits the schema; undefined stays undefined. Throws RequestError for a day or hour that does not exist. */
export function parseTime(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const date = text.slice(0, 10);
  const midnight = Date.parse(`${date}T00:00:00Z`);
  const time = Date.parse(text.length === 10 ? `${text}T00:00:00Z` : text);
  // Some engines read 30 February as a day in March.
  const exists = !Number.isNaN(midnight) && new Date(midnight).toISOString().startsWith(date);
  if (!exists || Number.isNaN(time)) throw new RequestError('invalid_request', name, `${name} must be ${TIME_DESCRIPTION}.`);
  return time;
}
