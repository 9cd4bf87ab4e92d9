/** The known name that a misspelt one was probably meant to be. */
import { distance } from 'fastest-levenshtein';

/** Null where none is near. Case, underscores and hyphens do not count, so that `maxTokens` is near `max_tokens`. */
export function nearestName(typed: string, known: Iterable<string>): string | null {
  const [nearest] = nearestNames(typed, known, 1);
  return nearest ?? null;
}

/** The nearest names, best first. */
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

/** Letters that may differ. Short names differ in one letter from too many others. */
function changesAllowed(length: number): number {
  if (length <= 3) return 0;
  return length <= 6 ? 1 : 2;
}

/** Letters that changed places count as one change: `fromat` is near `format`. */
function sameLetters(a: string, b: string): boolean {
  return a.length === b.length && [...a].sort().join('') === [...b].sort().join('');
}

function plainOf(name: string): string {
  return name.toLowerCase().replace(/[_-]/g, '');
}
