/** `MicroUsd` is money in whole micro-USD (10⁻⁶ US dollar). The type is branded, so that no plain number is accepted as money. */

export type MicroUsd = number & { readonly __brand: 'MicroUsd' };

/** Maximum micro-USD of a ledger step: ten million dollars, far below the largest exact integer. */
export const MAX_PER_STEP = 10_000_000_000_000;

/** Brands a number as money. Throws RangeError unless the number is a safe integer. */
export function microUsd(value: number): MicroUsd {
  if (!Number.isSafeInteger(value)) throw new RangeError('an amount of money must be a whole number of micro-USD');
  // -0 becomes 0.
  return (value === 0 ? 0 : value) as MicroUsd;
}

/** Dollars with exactly six decimal places: `-0.000001`, `12.340000`. */
export function formatUsd(amount: MicroUsd): string {
  const digits = Math.abs(amount).toString().padStart(7, '0');
  return `${amount < 0 ? '-' : ''}${digits.slice(0, -6)}.${digits.slice(-6)}`;
}

/** Dollars with at least two decimal places, and no further trailing zeros. */
export function shortUsd(amount: number): string {
  return formatUsd(microUsd(amount)).replace(/(\.\d\d\d*?)0+$/, '$1');
}
