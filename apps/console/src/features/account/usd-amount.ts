/** Parses amounts in US dollars that users type to whole micro-USD, and formats micro-USD for inputs. No floating-point arithmetic. */
import { formatUsd } from '../../ui/display/figures.js';

/** Limit of the console API: one million dollars. */
const MAX_MICRO_USD = 1_000_000_000_000;
const MICRO_DIGITS = 6;

type ParsedAmount =
  | { readonly kind: 'amount'; readonly microUsd: number }
  /** `problem`: error message for the user. */
  | { readonly kind: 'refused'; readonly problem: string };

/**
 * Reads an amount such as `5`, `$5` or `12.50`.
 *
 * @param places Maximum decimal places: 2 for cents, 6 for micro-USD.
 * @param options `zero`: whether zero is allowed.
 */
export function parseUsd(text: string, places: 2 | 6 = 2, { zero = false }: { readonly zero?: boolean } = {}): ParsedAmount {
  const trimmed = text.trim().replace(/^\$\s*/, '');
  if (trimmed === '') return refused('Enter an amount in US dollars, such as 10.');
  if (trimmed.includes(',')) return refused('Write the amount without commas, with a point before the cents.');
  const [, whole, fraction = ''] = /^(\d{1,12})(?:\.(\d*))?$/.exec(trimmed) ?? [];
  if (whole === undefined) return refused('Enter an amount in US dollars, such as 10 or 12.50.');
  if (fraction.length > places) return refused(places === 2 ? 'Amounts are in whole cents.' : 'The smallest amount is $0.000001.');
  const microUsd = Number(whole + fraction.padEnd(MICRO_DIGITS, '0'));
  if (!Number.isSafeInteger(microUsd) || microUsd > MAX_MICRO_USD) return refused('At most $1,000,000 at a time.');
  if (microUsd === 0 && !zero) return refused('The amount must be more than zero.');
  return { kind: 'amount', microUsd };
}

interface UsdLimits {
  /** Maximum decimal places. */
  readonly places?: 2 | 6;
  /** Micro-USD. */
  readonly min?: number;
  readonly max?: number;
}

/** Validation rule for react-hook-form: true, or an error message for the user. */
export function checkUsd(text: string, { places = 2, min = 1, max = MAX_MICRO_USD }: UsdLimits = {}): true | string {
  const typed = parseUsd(text, places, { zero: min === 0 });
  if (typed.kind === 'refused') return typed.problem;
  if (typed.microUsd < min) return `At least ${formatUsd(min)}.`;
  return typed.microUsd <= max || `At most ${formatUsd(max)}.`;
}

/** Micro-USD of a text accepted by {@link checkUsd}; 0 for any other text. */
export function microUsdOf(text: string): number {
  const typed = parseUsd(text, 6, { zero: true });
  return typed.kind === 'amount' ? typed.microUsd : 0;
}

/** Formats micro-USD as input text: 12,500,000 as `12.50`, 5,000,000 as `5`. A fraction has at least two digits. */
export function formatUsdInput(microUsd: number): string {
  const digits = String(microUsd).padStart(MICRO_DIGITS + 1, '0');
  const whole = digits.slice(0, -MICRO_DIGITS);
  const fraction = digits.slice(-MICRO_DIGITS).replace(/0+$/, '');
  return fraction === '' ? whole : `${whole}.${fraction.padEnd(2, '0')}`;
}

/** Amount rounded down to whole cents, in micro-USD. */
export function floorToCents(microUsd: number): number {
  return microUsd - (microUsd % 10_000);
}

function refused(problem: string): ParsedAmount {
  return { kind: 'refused', problem };
}
