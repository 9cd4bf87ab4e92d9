/** Amounts that people type in US dollars, as whole micro-USD. Digits are moved, never computed with. */

const MICRO_PER_CENT = 10_000;
const MOST_DIGITS = 9;

export type TypedUsd =
  | { readonly kind: 'amount'; readonly microUsd: number }
  /** A sentence for whoever typed it. */
  | { readonly kind: 'refused'; readonly problem: string };

/** Reads whole cents, such as `5`, `$5` and `12.50`. */
export function readCents(text: string): TypedUsd {
  const trimmed = text.trim().replace(/^\$\s*/, '');
  const [, dollars, cents = ''] = /^(\d+)(?:\.(\d+))?$/.exec(trimmed) ?? [];
  if (dollars === undefined) return { kind: 'refused', problem: 'Type an amount in US dollars, such as 10 or 12.50.' };
  if (cents.length > 2) return { kind: 'refused', problem: 'Amounts are in whole cents.' };
  if (dollars.length > MOST_DIGITS) return { kind: 'refused', problem: 'That is more than anybody can have.' };
  return { kind: 'amount', microUsd: Number(dollars + cents.padEnd(2, '0')) * MICRO_PER_CENT };
}

/** The most whole cents in an amount, as somebody would type it. */
export function typedCents(microUsd: number): string {
  const cents = String(Math.floor(Math.max(0, microUsd) / MICRO_PER_CENT)).padStart(3, '0');
  return `${cents.slice(0, -2)}.${cents.slice(-2)}`;
}
