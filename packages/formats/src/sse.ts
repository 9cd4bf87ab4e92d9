/** Framing of server-sent events (WHATWG HTML, section 9.2). */

/** Keep-alive: a comment block. Clients ignore it, and it is no part of the signed bytes. */
export const SSE_COMMENT = ': keep-alive\n\n';

export const SSE_DONE = 'data: [DONE]\n\n';

export function sseData(json: string): string {
  return `data: ${json}\n\n`;
}

/** An event with a type of its own, which the `event:` line repeats. */
export function sseEvent(type: string, json: string): string {
  return `event: ${type}\ndata: ${json}\n\n`;
}

const LINE_BREAKS_OF_SOME_READERS = /[\u0085\u2028\u2029]/g;

/**
 * JSON string literal of a text for use inside an event. Line reading in some clients (Python's `str.splitlines`) also
 * breaks at U+0085, U+2028 and U+2029, which JSON leaves as they are; escaped they are safe everywhere.
 */
export function sseString(text: string): string {
  return sseJson(text);
}

/** JSON text of a value for use inside an event, with the same escapes. */
export function sseJson(value: unknown): string {
  const json = JSON.stringify(value);
  if (json.search(LINE_BREAKS_OF_SOME_READERS) === -1) return json;
  return json.replace(LINE_BREAKS_OF_SOME_READERS, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
