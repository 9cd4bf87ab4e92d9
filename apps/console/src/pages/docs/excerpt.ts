/** `excerpt`: passage of a text around its first match. Separate from `search-index.ts`, whose virtual module tests cannot load. */

/** Maximum characters of an excerpt. */
const LENGTH = 180;
/** Maximum characters before the first match. */
const LEAD = 60;

/** Without a match, the start of the text. `words` are in lower case. */
export function excerpt(text: string, words: readonly string[]): string {
  const lower = text.toLowerCase();
  const positions = words.map((word) => lower.indexOf(word)).filter((position) => position >= 0);
  const match = Math.min(...positions);
  const start = positions.length === 0 || match <= LEAD ? 0 : text.indexOf(' ', match - LEAD) + 1;
  const end = start + LENGTH >= text.length ? text.length : text.lastIndexOf(' ', start + LENGTH);
  return `${start > 0 ? '… ' : ''}${text.slice(start, end <= start ? start + LENGTH : end)}${end < text.length ? ' …' : ''}`;
}
