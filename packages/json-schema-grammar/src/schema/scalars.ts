/** Combines the string and number keywords of a conjunction of schemas into one language or range. */

import type { NumberBounds } from '../language/number-language.js';
import { languageOfPattern, PatternError } from '../language/pattern-language.js';
import type { Language, LanguageFactory } from '../language/regular-language.js';
import type { Schema, SchemaDocument } from './schema-document.js';
import { SchemaError } from './schema-error.js';

export interface StringBounds {
  /** Language of the allowed strings, apart from their length; null: any string. */
  readonly language: Language | null;
  /** Minimum length, in code points. */
  readonly min: number;
  /** Maximum length, in code points. */
  readonly max: number;
}

/** A larger `maxLength` is lowered to this number of code points, which is more than typical context windows. */
const MAX_LENGTH = 100_000;
/** A larger `minLength` is rejected, even outside strict mode. */
const MAX_MIN_LENGTH = 10_000;

interface CompilerContext {
  readonly document: SchemaDocument;
  readonly languages: LanguageFactory;
  /** Throws {@link SchemaError} in strict mode. Otherwise the caller ignores the keyword. */
  reportUnsupported(schema: Schema, keyword: string, limit?: number | null): void;
}

/** Combines string keywords. `plain`: schemas without `$ref` and `allOf`, all of which must match. Throws {@link SchemaError}. */
export function stringBounds(context: CompilerContext, plain: readonly Schema[]): StringBounds {
  const { document, languages } = context;
  const parts: Language[] = [];
  let min = 0;
  let max = Infinity;
  for (const schema of plain) {
    if (schema.pattern !== undefined) parts.push(...patternOf(context, schema));
    const format = typeof schema.format === 'string' ? STRING_FORMATS.get(schema.format) : undefined;
    if (format !== undefined) parts.push(languageOfPattern(languages, format));
    min = Math.max(min, countOf(document, schema, 'minLength') ?? 0);
    max = Math.min(max, countOf(document, schema, 'maxLength') ?? Infinity);
    if (min > MAX_MIN_LENGTH) throw new SchemaError('unsupported', document.path(schema, 'minLength'), MAX_MIN_LENGTH);
  }
  if (max !== Infinity) max = Math.min(max, MAX_LENGTH);
  if (min > max) return { language: languages.nothing, min: 0, max: 0 };
  return { language: parts.length === 0 ? null : languages.intersection(...parts), min, max };
}

/** Language of `pattern`; empty if the keyword is unsupported and ignored. */
function patternOf(context: CompilerContext, schema: Schema): Language[] {
  const { document, languages } = context;
  if (typeof schema.pattern !== 'string') return document.invalid(schema, 'pattern');
  try {
    return [languageOfPattern(languages, schema.pattern)];
  } catch (error) {
    if (!(error instanceof PatternError)) throw error;
    if (error.code === 'invalid_request') return document.invalid(schema, 'pattern');
    context.reportUnsupported(schema, 'pattern', error.limit);
    return [];
  }
}

/** Combines number keywords, as {@link stringBounds}. Throws {@link SchemaError}. */
export function numberBounds(document: SchemaDocument, plain: readonly Schema[], isInteger: boolean): NumberBounds {
  let min: NumberBounds['min'] = null;
  let max: NumberBounds['max'] = null;
  const multiplesOf: number[] = [];
  for (const schema of plain) {
    for (const [keyword, isExclusive] of [
      ['minimum', schema.exclusiveMinimum === true],
      ['exclusiveMinimum', true],
    ] as const) {
      const value = numberOf(document, schema, keyword);
      if (value !== null && (min === null || value > min.value || (value === min.value && isExclusive))) min = { value, isExclusive };
    }
    for (const [keyword, isExclusive] of [
      ['maximum', schema.exclusiveMaximum === true],
      ['exclusiveMaximum', true],
    ] as const) {
      const value = numberOf(document, schema, keyword);
      if (value !== null && (max === null || value < max.value || (value === max.value && isExclusive))) max = { value, isExclusive };
    }
    const divisor = numberOf(document, schema, 'multipleOf');
    if (divisor !== null && divisor <= 0) document.invalid(schema, 'multipleOf');
    if (divisor !== null) multiplesOf.push(divisor);
  }
  // The compiler adds numbers excluded by `not`.
  return { isInteger, min, max, multiplesOf, except: [] };
}

/** Reads a keyword with a non-negative integer; null if absent. */
export function countOf(document: SchemaDocument, schema: Schema, keyword: string): number | null {
  const value = schema[keyword];
  if (value === undefined) return null;
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : document.invalid(schema, keyword);
}

/** Reads a keyword with a number; null if absent or a boolean. In draft 4, `exclusiveMinimum` is a boolean. */
function numberOf(document: SchemaDocument, schema: Schema, keyword: string): number | null {
  const value = schema[keyword];
  if (value === undefined || typeof value === 'boolean') return null;
  return typeof value === 'number' ? value : document.invalid(schema, keyword);
}

/** Language of the strings that match all schemas. Throws {@link SchemaError}. */
export function stringLanguage(context: CompilerContext, plain: readonly Schema[]): Language {
  const { languages } = context;
  const { language, min, max } = stringBounds(context, plain);
  const allowedValues = plain.flatMap((schema) => [
    ...(Array.isArray(schema.enum) ? [textsAmong(languages, schema.enum)] : []),
    ...(schema.const === undefined ? [] : [textsAmong(languages, [schema.const])]),
  ]);
  return languages.intersection(...allowedValues, ...(language === null ? [] : [language]), languages.repeat(languages.any, min, max));
}

/** Language of the strings among the values. */
function textsAmong(languages: LanguageFactory, values: readonly unknown[]): Language {
  return languages.union(...values.flatMap((value) => (typeof value === 'string' ? [languages.text(value)] : [])));
}

const YEAR = '[0-9]{4}';
const LEAP_YEAR = '(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)';
/** Days that every year has. */
const MONTH_DAY = '(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))';
const DATE = `(?:${YEAR}-${MONTH_DAY}|${LEAP_YEAR}-02-29)`;
const TIME = '(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])';
/** Part of a domain name. */
const LABEL = '[A-Za-z0-9]{1,15}(?:-[A-Za-z0-9]{1,15}){0,3}';
const DOMAIN = `${LABEL}(?:\\.${LABEL}){0,3}`;
const BYTE = '(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])';
/** Up to four hexadecimal digits. */
const HEX4 = '[0-9A-Fa-f]{1,4}';
/** Number of a unit of time. */
const COUNT = '[0-9]{1,9}';
/** Hours, minutes and seconds of a duration. */
const CLOCK = `T(?:${COUNT}H(?:${COUNT}M(?:${COUNT}S)?)?|${COUNT}M(?:${COUNT}S)?|${COUNT}S)`;
/** Years, months and days of a duration. */
const CALENDAR = `(?:${COUNT}Y(?:${COUNT}M(?:${COUNT}D)?)?|${COUNT}M(?:${COUNT}D)?|${COUNT}D)`;

/**
 * Anchored patterns, by value of `format`. Each matches a subset of what the format's RFC allows.
 *
 * Sources: RFC 3339, 4122, 5321, 1123, 2673 and 3986. Other formats are ignored, as annotations.
 */
const STRING_FORMATS: ReadonlyMap<string, string> = new Map([
  ['date', `^${DATE}$`],
  ['time', `^${TIME}$`],
  ['date-time', `^${DATE}T${TIME}$`],
  ['duration', `^P(?:${COUNT}W|${CLOCK}|${CALENDAR}(?:${CLOCK})?)$`],
  ['email', `^[A-Za-z0-9_+-]+(?:\\.[A-Za-z0-9_+-]+)*@${LABEL}(?:\\.${LABEL}){1,3}$`],
  ['hostname', `^${DOMAIN}$`],
  ['ipv4', `^${BYTE}(?:\\.${BYTE}){3}$`],
  ['ipv6', `^(?:(?:${HEX4}:){7}${HEX4}|(?:${HEX4}:){1,4}:${HEX4}(?::${HEX4}){0,2}|::1?)$`],
  ['uuid', '^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$'],
  [
    'uri',
    `^[a-z][a-z0-9+.-]{1,15}://${DOMAIN}(?::[1-9][0-9]{0,3})?(?:/[A-Za-z0-9._~!$&'()*+,;=:@-]*)*(?:\\?[A-Za-z0-9._~!$&'()*+,;=:@/?-]*)?(?:#[A-Za-z0-9._~-]*)?$`,
  ],
]);
