/** Suggests the nearest known word for a misspelt word. Pure. */

/** The nearest known word; null if more than a third of the letters, and more than one, would change. */
export function nearest(typed: string, known: readonly string[]): string | null {
  let best: string | null = null;
  let min = Number.POSITIVE_INFINITY;
  for (const word of known) {
    const changes = distance(typed.toLowerCase(), word.toLowerCase());
    if (changes < min) [best, min] = [word, changes];
  }
  return best !== null && min <= Math.max(1, Math.floor(Math.max(typed.length, best.length) / 3)) ? best : null;
}

/** " (did you mean …?)", or nothing. */
export function didYouMean(typed: string, known: readonly string[]): string {
  const meant = nearest(typed, known);
  return meant === null ? '' : ` (did you mean ${meant}?)`;
}

/** Optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours. */
function distance(a: string, b: string): number {
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      let min = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + cost);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) min = Math.min(min, (before[j - 2] ?? 0) + 1);
      row.push(min);
    }
    [before, last] = [last, row];
  }
  return last[b.length] ?? 0;
}
