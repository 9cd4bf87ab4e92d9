/** Finds known names that are similar to a misspelt name, for suggestions in error messages. */
import { distance } from 'fastest-levenshtein';

/** The most similar name, or null. Ignores case, underscores and hyphens, so that `maxTokens` matches `max_tokens`. */
export function nearestName(typed: string, known: Iterable<string>): string | null {
  const [nearest] = nearestNames(typed, known, 1);
  return nearest ?? null;
}

/** The most similar names, best first. */
export function nearestNames(typed: string, known: Iterable<string>, max: number): readonly string[] {
  const plain = plainOf(typed);
  const maxChanges = changesAllowed(plain.length);
  const near: { readonly name: string; readonly changes: number }[] = [];
  for (const name of known) {
    const other = plainOf(name);
    if (Math.abs(other.length - plain.length) > maxChanges) continue;
    const changes = sameLetters(plain, other) ? Math.min(1, distance(plain, other)) : distance(plain, other);
    if (changes <= maxChanges) near.push({ name, changes });
  }
  return near
    .sort((a, b) => a.changes - b.changes)
    .slice(0, max)
    .map(({ name }) => name);
}

/** Maximum edit distance by length. Short names are similar to too many other names. */
function changesAllowed(length: number): number {
  if (length <= 3) return 0;
  return length <= 6 ? 1 : 2;
}

/** Whether the names have the same letters in any order. A different order is one edit, so that `fromat` matches `format`. */
function sameLetters(a: string, b: string): boolean {
  return a.length === b.length && [...a].sort().join('') === [...b].sort().join('');
}

function plainOf(name: string): string {
  return name.toLowerCase().replace(/[_-]/g, '');
}
