/**
 * Regular languages of JSON numbers with bounds, multiples and exclusions.
 *
 * Automata compare digit by digit, because regular expressions for large bounds would be huge.
 */

import { languageOfPattern } from './pattern-language.js';
import type { Language, LanguageFactory, Leaf } from './regular-language.js';

export interface NumberBounds {
  /** Only integers; otherwise decimals also. */
  readonly isInteger: boolean;
  readonly min: { readonly value: number; readonly isExclusive: boolean } | null;
  readonly max: { readonly value: number; readonly isExclusive: boolean } | null;
  /** The number must be a multiple of each; all are greater than 0. */
  readonly multiplesOf: readonly number[];
  /** Numbers that are not allowed. */
  readonly except: readonly number[];
}

export const ANY_NUMBER: NumberBounds = { isInteger: false, min: null, max: null, multiplesOf: [], except: [] };

/** A `multipleOf` cannot be enforced: it is inexact as a double, too large, or has too many decimals. */
export class MultipleError extends Error {
  constructor() {
    super('the multiple is refused');
    this.name = 'MultipleError';
  }
}

/** At most 15 digits, which a double represents exactly. */
const INTEGER = '(0|-?[1-9][0-9]{0,14})';
/** Numbers without constraints. May have an exponent. */
const NUMBER = '^-?(0|[1-9][0-9]{0,14})(\\.[0-9]{1,15})?([eE][+-]?[0-9]{1,2})?$';
/** Numbers with constraints. At most 15 digits, and no exponent, because the automata read digit by digit. */
const PLAIN_NUMBER = `^(${INTEGER}|-?(0|[1-9][0-9]{0,8})\\.[0-9]{1,6})$`;
/** Above every number of 15 digits, so that larger bounds need no automaton. */
const ABOVE_ALL = 1e15;
/** Maximum modulus of a remainder automaton, which has one state per remainder. */
const MAX_MODULUS = 2000;
/** Maximum decimals of a `multipleOf`. */
const MAX_DECIMALS = 6;

/** Code points of the digits. */
const DIGIT = [0x30, 0x39] as const;
const POINT = 0x2e;
const MINUS = 0x2d;

/** Language of the numbers within the bounds. Throws {@link MultipleError}. */
export function languageOfNumber(languages: LanguageFactory, bounds: NumberBounds): Language {
  const { isInteger, min, max, multiplesOf, except } = bounds;
  const integers = languageOfPattern(languages, `^${INTEGER}$`);
  const isUnbounded = min === null && max === null && multiplesOf.length === 0 && except.length === 0;
  if (isUnbounded) return isInteger ? integers : languageOfPattern(languages, NUMBER);
  const parts = [isInteger ? integers : languageOfPattern(languages, PLAIN_NUMBER)];
  if (min !== null) parts.push(numbersBeyond(languages, min.value, min.isExclusive, 1));
  if (max !== null) parts.push(numbersBeyond(languages, max.value, max.isExclusive, -1));
  for (const divisor of multiplesOf) parts.push(multiples(languages, divisor, integers));
  for (const value of except) parts.push(languages.complement(spellings(languages, value)));
  return languages.intersection(...parts);
}

/** Numbers at or above the value (`sign` 1), or at or below the value (-1). */
function numbersBeyond(languages: LanguageFactory, value: number, isExclusive: boolean, sign: 1 | -1): Language {
  const minus = languages.characterClass([MINUS, MINUS]);
  // `sign` -1 mirrors the value at zero, so that both directions compare magnitudes.
  const [sameSide, otherSide] = sign === 1 ? [languages.empty, minus] : [minus, languages.empty];
  const unsigned = languages.repeat(languages.characterClass([...DIGIT, POINT, POINT]), 1, Infinity);
  const mirrored = value * sign;
  if (mirrored > 0) return languages.concatenation(sameSide, magnitude(languages, mirrored, isExclusive ? ['>'] : ['>', '=']));
  const within = languages.concatenation(otherSide, magnitude(languages, -mirrored, isExclusive ? ['<'] : ['<', '=']));
  const magnitudes = isExclusive && mirrored === 0 ? magnitude(languages, 0, ['>']) : unsigned;
  return languages.union(languages.concatenation(sameSide, magnitudes), within);
}

/** Unsigned numbers whose order relative to the value is accepted. */
function magnitude(languages: LanguageFactory, value: number, accepted: readonly Order[]): Language {
  if (value >= ABOVE_ALL) return accepted.includes('<') ? languages.anyText : languages.nothing;
  const [whole = '0', decimals = ''] = plainDecimal(value).split('.');
  return languages.leaf(new DecimalComparison(whole, decimals.replace(/0+$/, ''), accepted, 0, '=', null));
}

/** Decimal notation of a non-negative number without exponent. `String` uses an exponent from 1e21 and below 1e-6. */
function plainDecimal(value: number): string {
  const [digits = '', exponent] = String(value).split('e');
  if (exponent === undefined) return digits;
  const [first = '', decimals = ''] = digits.split('.');
  const shift = Number(exponent);
  // A double has at most 17 significant digits, so numbers from 1e21 have no decimals.
  return shift > 0 ? `${first}${decimals}`.padEnd(shift + 1, '0') : `0.${'0'.repeat(-shift - 1)}${first}${decimals}`;
}

type Order = '<' | '=' | '>';

/** Automaton that compares the digits read, a decimal number without leading zeros, with a constant. */
class DecimalComparison implements Leaf {
  readonly key: string;
  readonly nullable: boolean;
  readonly cuts = [...DIGIT.map((code, at) => code + at), ...Array.from({ length: 9 }, (_, digit) => 0x31 + digit), POINT, POINT + 1];

  /**
   * - `whole`, `decimals`: digits of the constant before and after the point.
   * - `accepted`: orders of the number relative to the constant that the automaton accepts.
   * - `wholeCount`: digits read before the point, at most one more than `whole` has.
   * - `decimalCount`: digits read after the point, at most one more than `decimals` has; null before the point.
   * - `order`: order of the digits read, relative to the constant.
   */
  constructor(
    private readonly whole: string,
    private readonly decimals: string,
    private readonly accepted: readonly Order[],
    private readonly wholeCount: number,
    private readonly order: Order,
    private readonly decimalCount: number | null,
  ) {
    this.key = `compare ${whole}.${decimals} ${accepted.join('')} ${wholeCount} ${order} ${decimalCount}`;
    this.nullable = wholeCount > 0 && decimalCount !== 0 && accepted.includes(this.#final());
  }

  step(code: number): DecimalComparison | null {
    if (code === POINT)
      return this.decimalCount === null && this.wholeCount > 0 ? this.#next(this.wholeCount, this.#wholeOrder(), 0) : null;
    if (code < DIGIT[0] || code > DIGIT[1]) return null;
    const digit = code - DIGIT[0];
    if (this.decimalCount === null) {
      const order = this.order === '=' ? compare(digit, Number(this.whole[this.wholeCount] ?? digit)) : this.order;
      return this.#next(Math.min(this.wholeCount + 1, this.whole.length + 1), order, null);
    }
    const order = this.order === '=' ? compare(digit, Number(this.decimals[this.decimalCount] ?? 0)) : this.order;
    return this.#next(this.wholeCount, order, Math.min(this.decimalCount + 1, this.decimals.length + 1));
  }

  #next(wholeCount: number, order: Order, decimalCount: number | null): DecimalComparison {
    return new DecimalComparison(this.whole, this.decimals, this.accepted, wholeCount, order, decimalCount);
  }

  /** Order of the whole parts. A longer whole part is larger, because there are no leading zeros. */
  #wholeOrder(): Order {
    const byLength = compare(this.wholeCount, this.whole.length);
    return byLength === '=' ? this.order : byLength;
  }

  /** Order of the numbers if the text ends here. Missing decimals count as zeros. */
  #final(): Order {
    const order = this.decimalCount === null ? this.#wholeOrder() : this.order;
    const isShorter = (this.decimalCount ?? 0) < this.decimals.length;
    return order === '=' && isShorter ? '<' : order;
  }
}

/** Order of `a` relative to `b`. */
function compare(a: number, b: number): Order {
  return a < b ? '<' : a > b ? '>' : '=';
}

/**
 * Multiples of an integer, or of a fraction that a double represents exactly (0.5, 0.25).
 *
 * @throws {MultipleError} For other numbers. Validators divide doubles, so they would reject some multiples of 0.01.
 */
function multiples(languages: LanguageFactory, divisor: number, integers: Language): Language {
  const text = plainDecimal(divisor);
  const decimals = text.split('.')[1]?.length ?? 0;
  const scaled = divisor * 10 ** decimals;
  const isExact = Number.isInteger(divisor * 2 ** MAX_DECIMALS) && Number.isInteger(scaled);
  if (!isExact || scaled > MAX_MODULUS || decimals > MAX_DECIMALS) throw new MultipleError();
  const minus = languages.optional(languages.characterClass([MINUS, MINUS]));
  const multiplesOfModulus = (modulus: number) => languages.concatenation(minus, languages.leaf(new RemainderLeaf(modulus, 0)));
  const whole = languages.intersection(integers, multiplesOfModulus(scaled / greatestCommonDivisor(scaled, 10 ** decimals)));
  if (decimals === 0) return whole;
  const digits = languages.characterClass(DIGIT);
  const point = languages.characterClass([POINT, POINT]);
  const form = languages.concatenation(minus, languages.repeat(digits, 1, Infinity), point, languages.repeat(digits, decimals, decimals));
  return languages.union(whole, languages.intersection(form, multiplesOfModulus(scaled)));
}

/** Automaton for the remainder of the digits read, divided by `modulus`. Ignores the decimal point. */
class RemainderLeaf implements Leaf {
  readonly key: string;
  readonly nullable: boolean;
  readonly cuts = [POINT, POINT + 1, ...Array.from({ length: 11 }, (_, digit) => 0x30 + digit)];

  constructor(
    private readonly modulus: number,
    private readonly remainder: number,
  ) {
    this.key = `remainder ${modulus} ${remainder}`;
    this.nullable = remainder === 0;
  }

  step(code: number): RemainderLeaf | null {
    if (code === POINT) return this;
    if (code < DIGIT[0] || code > DIGIT[1]) return null;
    return new RemainderLeaf(this.modulus, (this.remainder * 10 + code - DIGIT[0]) % this.modulus);
  }
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

/** All spellings of a number without exponent: 5, 5.0, 5.00. */
function spellings(languages: LanguageFactory, value: number): Language {
  const [whole = '', decimals = ''] = plainDecimal(Math.abs(value)).split('.');
  const zeros = languages.repeat(languages.characterClass([0x30, 0x30]), 0, Infinity);
  const point = languages.characterClass([POINT, POINT]);
  const minus = languages.characterClass([MINUS, MINUS]);
  const sign = value === 0 ? languages.optional(minus) : value < 0 ? minus : languages.empty;
  const fraction =
    decimals === ''
      ? languages.optional(languages.concatenation(point, zeros))
      : languages.concatenation(point, languages.text(decimals), zeros);
  return languages.concatenation(sign, languages.text(whole), fraction);
}
