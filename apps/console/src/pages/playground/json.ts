/** Readers for JSON of unknown shape: events of a stream, and the stored conversation. */

/** Parsed value; null if the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Member of an object; undefined if the value is not an object, or has no such member. */
export function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>)[name] : undefined;
}
