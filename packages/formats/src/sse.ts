/** Encodes server-sent events (SSE; WHATWG HTML, section 9.2). */

/** Keep-alive comment. Clients ignore it, and the signed bytes exclude it. */
export const SSE_COMMENT = ': keep-alive\n\n';

export const SSE_DONE = 'data: [DONE]\n\n';

export function sseData(json: string): string {
  return `data: ${json}\n\n`;
}

/** Event with an `event:` line. */
export function sseEvent(type: string, json: string): string {
  return `event: ${type}\ndata: ${json}\n\n`;
}

const LINE_BREAKS_OF_SOME_READERS = /[\u0085\u2028\u2029]/g;

/** JSON text for an event. Escapes U+0085, U+2028 and U+2029, which some clients treat as line breaks (Python's `str.splitlines`). */
export function sseJson(value: unknown): string {
  const json = JSON.stringify(value);
  if (json.search(LINE_BREAKS_OF_SOME_READERS) === -1) return json;
  return json.replace(LINE_BREAKS_OF_SOME_READERS, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
