/** Texts in a query by which lists are filtered. */
import { RequestError } from '@inference/formats';

const MAX_CHARACTERS = 256;

/** A text that was given once; null where it is not there or empty. Throws RequestError. */
export function readTextFilter(query: Readonly<Record<string, unknown>>, name: string): string | null {
  const value = query[name];
  if (value === undefined || value === '') return null;
  if (typeof value === 'string' && value.length <= MAX_CHARACTERS) return value;
  throw new RequestError('invalid_request', name, `${name} must be one text of at most ${MAX_CHARACTERS} characters.`);
}
