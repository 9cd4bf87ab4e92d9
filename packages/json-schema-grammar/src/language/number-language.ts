/**
 * LanguageFactory of JSON numbers within bounds and of multiples. Small automata count and compare digit by digit, so the size of a bound
 * does not matter.
 */

import { languageOfPattern } from './pattern-language.js';
import type { Language, LanguageFactory, Leaf } from './regular-language.js';

export interface NumberBounds {
  readonly isInteger: boolean;
  readonly min: { readonly value: number; readonly isExclusive: boolean } | null;
  readonly max: { readonly value: number; readonly isExclusive: boolean } | null;
  /** All must hold; each greater than 0. */
  readonly multiplesOf: readonly number[];
  /** Excluded numbers. */
  readonly except: readonly number[];
}

export const ANY_NUMBER: NumberBounds = { isInteger: false, min: null, max: null, multiplesOf: [], except: [] };

/** The engine cannot keep to such a multiple. */
export class MultipleError extends Error {
  constructor() {
    super('the multiple is refused');
    this.name = 'MultipleError';
  }
}

/** Numbers with 15 digits are exact in a double. */
const INTEGER = '(0|-?[1-9][0-9]{0,14})';
const FREE = '^-?(0|[1-9][0-9]{0,14})(\\.[0-9]{1,15})?([eE][+-]?[0-9]{1,2})?$';
const BOUND = `^(${INTEGER}|-?(0|[1-9][0-9]{0,8})\\.[0-9]{1,6})$`;
/** Bound above every number of 15 digits. */
const BEYOND = 1e15;
const MAX_MODULUS = 2000;
const MAX_DECIMALS = 6;

const DIGIT = [0x30, 0x39] as const;
const POINT = 0x2e;

/** Throws {@link MultipleError}. */
export function languageOfNumber(languages: LanguageFactory, bounds: NumberBounds): Language {
  const { isInteger, min, max, multiplesOf, except } = bounds;
  const integers = languageOfPattern(languages, `^${INTEGER}$`);
  const isFree = min === null && max === null && multiplesOf.length === 0 && except.length === 0;
  if (isFree) return isInteger ? integers : languageOfPattern(languages, FREE);
  const parts = [isInteger ? integers : languageOfPattern(languages, BOUND)];
  if (min !== null) parts.push(beyond(languages, min.value, min.isExclusive, 1));
  if (max !== null) parts.push(beyond(languages, max.value, max.isExclusive, -1));
  for (const divisor of multiplesOf) parts.push(multiples(languages, divisor, integers));
  for (const value of except) parts.push(languages.complement(spellings(languages, value)));
  return languages.intersection(...parts);
}

/** Numbers at or above the value (`sign` 1), or at or below the value (-1). */
function beyond(languages: LanguageFactory, value: number, isExclusive: boolean, sign: 1 | -1): Language {
  const minus = languages.characterClass([0x2d, 0x2d]);
  // Signs chosen so that "beyond" means away from zero.
  const [near, far] = sign === 1 ? [languages.empty, minus] : [minus, languages.empty];
  const unsigned = languages.repeat(languages.characterClass([...DIGIT, POINT, POINT]), 1, Infinity);
  const distance = value * sign;
  if (distance > 0) return languages.concatenation(near, magnitude(languages, distance, isExclusive ? ['>'] : ['>', '=']));
  const within = languages.concatenation(far, magnitude(languages, -distance, isExclusive ? ['<'] : ['<', '=']));
  const zero = isExclusive && distance === 0 ? magnitude(languages, 0, ['>']) : unsigned;
  return languages.union(languages.concatenation(near, zero), within);
}

function magnitude(languages: LanguageFactory, value: number, wanted: readonly Order[]): Language {
  if (value >= BEYOND) return wanted.includes('<') ? languages.anyText : languages.nothing;
  const [whole = '0', decimals = ''] = plainDecimal(value).split('.');
  return languages.leaf(new DecimalComparison(whole, decimals.replace(/0+$/, ''), wanted, 0, '=', null));
}

/** Decimal notation without an exponent. Decimals beyond those of the compared numbers make no difference. */
function plainDecimal(value: number): string {
  const text = String(value);
  if (!text.includes('e')) return text;
  const [digits = '', exponent = '0'] = text.split('e');
  const [first = '', rest = ''] = digits.split('.');
  return `0.${'0'.repeat(Math.max(0, -Number(exponent) - 1))}${first}${rest}`;
}

type Order = '<' | '=' | '>';

/** Automaton that compares a decimal number, without leading zeros, with a constant. */
class DecimalComparison implements Leaf {
  readonly key: string;
  readonly nullable: boolean;
  readonly cuts = [...DIGIT.map((code, at) => code + at), ...Array.from({ length: 9 }, (_, digit) => 0x31 + digit), POINT, POINT + 1];

  /** `read`: digits before the point; `order`: comparison of the common digits; `fraction`: digits after the point, null before. */
  constructor(
    private readonly whole: string,
    private readonly decimals: string,
    private readonly wanted: readonly Order[],
    private readonly read: number,
    private readonly order: Order,
    private readonly fraction: number | null,
  ) {
    this.key = `compare ${whole}.${decimals} ${wanted.join('')} ${read} ${order} ${fraction}`;
    this.nullable = read > 0 && fraction !== 0 && wanted.includes(this.#final());
  }

  step(code: number): DecimalComparison | null {
    if (code === POINT) return this.fraction === null && this.read > 0 ? this.#with(this.read, this.#wholeOrder(), 0) : null;
    if (code < DIGIT[0] || code > DIGIT[1]) return null;
    const digit = code - DIGIT[0];
    if (this.fraction === null) {
      const order = this.order === '=' ? compare(digit, Number(this.whole[this.read] ?? digit)) : this.order;
      return this.#with(Math.min(this.read + 1, this.whole.length + 1), order, null);
    }
    const order = this.order === '=' ? compare(digit, Number(this.decimals[this.fraction] ?? 0)) : this.order;
    return this.#with(this.read, order, Math.min(this.fraction + 1, this.decimals.length + 1));
  }

  #with(read: number, order: Order, fraction: number | null): DecimalComparison {
    return new DecimalComparison(this.whole, this.decimals, this.wanted, read, order, fraction);
  }

  /** More digits before the point are more. */
  #wholeOrder(): Order {
    const byLength = compare(this.read, this.whole.length);
    return byLength === '=' ? this.order : byLength;
  }

  #final(): Order {
    const order = this.fraction === null ? this.#wholeOrder() : this.order;
    const isShorter = (this.fraction ?? 0) < this.decimals.length;
    return order === '=' && isShorter ? '<' : order;
  }
}

function compare(a: number, b: number): Order {
  return a < b ? '<' : a > b ? '>' : '=';
}

/**
 * Multiples of an integer, or of a fraction that is exact in a double (0.5, 0.25). For others, such as 0.01, validators that divide
 * doubles reject some multiples.
 */
function multiples(languages: LanguageFactory, divisor: number, integers: Language): Language {
  const text = plainDecimal(divisor);
  const decimals = text.split('.')[1]?.length ?? 0;
  const scaled = divisor * 10 ** decimals;
  const isExact = Number.isInteger(divisor * 2 ** MAX_DECIMALS) && Number.isInteger(scaled);
  if (!isExact || scaled > MAX_MODULUS || decimals > MAX_DECIMALS) throw new MultipleError();
  const minus = languages.optional(languages.characterClass([0x2d, 0x2d]));
  const count = (modulus: number) => languages.concatenation(minus, languages.leaf(new RemainderLeaf(modulus, 0)));
  const whole = languages.intersection(integers, count(scaled / greatestCommonDivisor(scaled, 10 ** decimals)));
  if (decimals === 0) return whole;
  const digits = languages.characterClass(DIGIT);
  const point = languages.characterClass([POINT, POINT]);
  const form = languages.concatenation(minus, languages.repeat(digits, 1, Infinity), point, languages.repeat(digits, decimals, decimals));
  return languages.union(whole, languages.intersection(form, count(scaled)));
}

/** Automaton for the remainder of the digits read so far. The decimal point is skipped. */
class RemainderLeaf implements Leaf {
  readonly key: string;
  readonly nullable: boolean;
  readonly cuts = [POINT, POINT + 1, ...Array.from({ length: 11 }, (_, digit) => 0x30 + digit)];

  constructor(
    private readonly modulus: number,
    private readonly rest: number,
  ) {
    this.key = `remainder ${modulus} ${rest}`;
    this.nullable = rest === 0;
  }

  step(code: number): RemainderLeaf | null {
    if (code === POINT) return this;
    if (code < DIGIT[0] || code > DIGIT[1]) return null;
    return new RemainderLeaf(this.modulus, (this.rest * 10 + code - DIGIT[0]) % this.modulus);
  }
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

/** All ways to write a number without an exponent. */
function spellings(languages: LanguageFactory, value: number): Language {
  const [whole = '', decimals = ''] = plainDecimal(Math.abs(value)).split('.');
  const zeros = languages.repeat(languages.characterClass([0x30, 0x30]), 0, Infinity);
  const point = languages.characterClass([POINT, POINT]);
  const minus = languages.characterClass([0x2d, 0x2d]);
  const sign = value === 0 ? languages.optional(minus) : value < 0 ? minus : languages.empty;
  const fraction =
    decimals === ''
      ? languages.optional(languages.concatenation(point, zeros))
      : languages.concatenation(point, languages.text(decimals), zeros);
  return languages.concatenation(sign, languages.text(whole), fraction);
}
