/** Parser for canonical JSON (RFC 8785) in sealed requests and answers. */
import { fromUtf8 } from '../bytes.js';
import { canonicalJson, type JsonValue } from '../canonical-json.js';
import { E2eError } from './error.js';

/** Parses canonical JSON. `name` describes the input in the error message. Throws E2eError `malformed`. */
export function parseCanonicalJson(bytes: Uint8Array, name: string): unknown {
  try {
    const text = fromUtf8(bytes);
    const value = JSON.parse(text) as JsonValue;
    if (canonicalJson(value) === text) return value;
  } catch {
    // Invalid or too deeply nested JSON fails like non-canonical JSON.
  }
  throw new E2eError('malformed', `the ${name} is not canonical JSON`);
}
