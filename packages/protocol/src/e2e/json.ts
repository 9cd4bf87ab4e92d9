/** Canonical JSON (RFC 8785) of the end-to-end profile. */
import { fromUtf8 } from '../bytes.js';
import { canonicalJson, type JsonValue } from '../canonical-json.js';
import { E2eError } from './error.js';

/** Value of canonical JSON. `name` describes the bytes in the error. Throws E2eError `malformed`. */
export function parseCanonicalJson(bytes: Uint8Array, name: string): unknown {
  try {
    const text = fromUtf8(bytes);
    const value = JSON.parse(text) as JsonValue;
    if (canonicalJson(value) === text) return value;
  } catch {
    // Falls through: invalid or too deeply nested JSON is not canonical JSON either.
  }
  throw new E2eError('malformed', `the ${name} is not canonical JSON`);
}
