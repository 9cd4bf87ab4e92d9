/** What schemas say of strings and numbers. */
import type { Schema, SchemaDocument } from './conjunction.js';
import type { Language, Languages } from './language.js';
import type { NumberBounds } from './numbers.js';
import { languageOfPattern, PatternError } from './pattern.js';
import { SchemaError } from './schema-error.js';
import { STRING_FORMATS } from './string-formats.js';

export interface StringBounds {
  /** Null: of any content. */
  readonly language: Language | null;
  /** Code points. */
  readonly least: number;
  readonly most: number;
}

/** Longest string that is told from longer ones: more than a context holds. */
const MAX_LENGTH = 100_000;
const MAX_LEAST_LENGTH = 10_000;

interface Surroundings {
  readonly document: SchemaDocument;
  readonly languages: Languages;
  refuse(schema: Schema, keyword: string, limit?: number | null): void;
}

/** Throws {@link SchemaError}. */
export function stringBounds(around: Surroundings, plain: readonly Schema[]): StringBounds {
  const { document, languages } = around;
  const parts: Language[] = [];
  let least = 0;
  let most = Infinity;
  for (const schema of plain) {
    if (schema.pattern !== undefined) parts.push(...patternOf(around, schema));
    const format = typeof schema.format === 'string' ? STRING_FORMATS.get(schema.format) : undefined;
    if (format !== undefined) parts.push(languageOfPattern(languages, format));
    least = Math.max(least, countOf(document, schema, 'minLength') ?? 0);
    most = Math.min(most, countOf(document, schema, 'maxLength') ?? Infinity);
    if (least > MAX_LEAST_LENGTH) throw new SchemaError('unsupported', document.path(schema, 'minLength'), MAX_LEAST_LENGTH);
  }
  if (most !== Infinity) most = Math.min(most, MAX_LENGTH);
  if (least > most) return { language: languages.nothing, least: 0, most: 0 };
  return { language: parts.length === 0 ? null : languages.all(...parts), least, most };
}

function patternOf(around: Surroundings, schema: Schema): Language[] {
  const { document, languages } = around;
  if (typeof schema.pattern !== 'string') return document.invalid(schema, 'pattern');
  try {
    return [languageOfPattern(languages, schema.pattern)];
  } catch (error) {
    if (!(error instanceof PatternError)) throw error;
    if (error.code === 'invalid_request') return document.invalid(schema, 'pattern');
    around.refuse(schema, 'pattern', error.limit);
    return [];
  }
}

/** Throws {@link SchemaError}. */
export function numberBounds(document: SchemaDocument, plain: readonly Schema[], isInteger: boolean): NumberBounds {
  let least: NumberBounds['least'] = null;
  let most: NumberBounds['most'] = null;
  const multiplesOf: number[] = [];
  for (const schema of plain) {
    for (const [keyword, isExclusive] of [
      ['minimum', schema.exclusiveMinimum === true],
      ['exclusiveMinimum', true],
    ] as const) {
      const value = numberOf(document, schema, keyword);
      if (value !== null && (least === null || value > least.value || (value === least.value && isExclusive)))
        least = { value, isExclusive };
    }
    for (const [keyword, isExclusive] of [
      ['maximum', schema.exclusiveMaximum === true],
      ['exclusiveMaximum', true],
    ] as const) {
      const value = numberOf(document, schema, keyword);
      if (value !== null && (most === null || value < most.value || (value === most.value && isExclusive))) most = { value, isExclusive };
    }
    const divisor = numberOf(document, schema, 'multipleOf');
    if (divisor !== null && divisor <= 0) document.invalid(schema, 'multipleOf');
    if (divisor !== null) multiplesOf.push(divisor);
  }
  return { isInteger, least, most, multiplesOf, except: [] };
}

/** A keyword that counts; null where it is absent. */
export function countOf(document: SchemaDocument, schema: Schema, keyword: string): number | null {
  const value = schema[keyword];
  if (value === undefined) return null;
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : document.invalid(schema, keyword);
}

/** Older drafts have a boolean in place of an exclusive bound. */
function numberOf(document: SchemaDocument, schema: Schema, keyword: string): number | null {
  const value = schema[keyword];
  if (value === undefined || typeof value === 'boolean') return null;
  return typeof value === 'number' ? value : document.invalid(schema, keyword);
}

/** Strings that fit, where only schemas of strings are given. Throws {@link SchemaError}. */
export function stringLanguage(around: Surroundings, plain: readonly Schema[]): Language {
  const { languages } = around;
  const { language, least, most } = stringBounds(around, plain);
  const named = plain.flatMap((schema) => {
    const values: readonly unknown[] | null = Array.isArray(schema.enum) ? schema.enum : schema.const === undefined ? null : [schema.const];
    if (values === null) return [];
    return [languages.either(...values.flatMap((value) => (typeof value === 'string' ? [languages.text(value)] : [])))];
  });
  return languages.all(...named, ...(language === null ? [] : [language]), languages.repeat(languages.any, least, most));
}
