/** Amounts that people type in US dollars, as whole micro-USD. Digits are moved, never computed with. */

const MICRO_DIGITS = 6;
const MOST_DIGITS = 9;

export type TypedUsd =
  | { readonly kind: 'amount'; readonly microUsd: number }
  /** A sentence for whoever typed it. */
  | { readonly kind: 'refused'; readonly problem: string };

/** Reads amounts such as `5`, `$5` and `12.50`. `places`: most digits behind the point, 2 for cents, 6 for micro-USD. */
export function readUsd(text: string, places: 2 | 6 = 2): TypedUsd {
  const trimmed = text.trim().replace(/^\$\s*/, '');
  const [, dollars, fraction = ''] = /^(\d+)(?:\.(\d+))?$/.exec(trimmed) ?? [];
  if (dollars === undefined) return refused('Type an amount in US dollars, such as 10 or 12.50.');
  if (fraction.length > places) return refused(places === 2 ? 'Amounts are in whole cents.' : 'The smallest part is $0.000001.');
  if (dollars.length > MOST_DIGITS) return refused('That is more than there can be.');
  return { kind: 'amount', microUsd: Number(dollars + fraction.padEnd(MICRO_DIGITS, '0')) };
}

/** An amount as somebody would type it: with cents at least, and no digit that says nothing. */
export function typedUsd(microUsd: number): string {
  const digits = String(Math.max(0, microUsd)).padStart(MICRO_DIGITS + 1, '0');
  const fraction = digits.slice(-MICRO_DIGITS).replace(/0{1,4}$/, '');
  return `${digits.slice(0, -MICRO_DIGITS)}.${fraction}`;
}

/** The whole cents in an amount, as micro-USD. */
export function wholeCents(microUsd: number): number {
  return microUsd - (microUsd % 10_000);
}

function refused(problem: string): TypedUsd {
  return { kind: 'refused', problem };
}
