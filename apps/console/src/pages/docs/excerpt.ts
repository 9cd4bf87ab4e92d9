/**
 * `excerpt` shortens a text to a passage around its first match.
 *
 * A module of its own, because tests cannot load the virtual module that the index imports.
 */

/** Maximum characters of an excerpt. */
const LENGTH = 180;
/** Maximum characters before the first match. */
const LEAD = 60;

/** Excerpt of a text around the first matching word. */
export function excerpt(text: string, words: readonly string[]): string {
  const lower = text.toLowerCase();
  const positions = words.map((word) => lower.indexOf(word)).filter((position) => position >= 0);
  const match = Math.min(...positions);
  const start = positions.length === 0 || match <= LEAD ? 0 : text.indexOf(' ', match - LEAD) + 1;
  const end = start + LENGTH >= text.length ? text.length : text.lastIndexOf(' ', start + LENGTH);
  return `${start > 0 ? '… ' : ''}${text.slice(start, end <= start ? start + LENGTH : end)}${end < text.length ? ' …' : ''}`;
}
