/** Combines the string and number keywords of a conjunction of schemas into one language or range. */

import type { NumberBounds } from '../language/number-language.js';
import { languageOfPattern, PatternError } from '../language/pattern-language.js';
import type { Language, LanguageFactory } from '../language/regular-language.js';
import { STRING_FORMATS } from '../language/string-formats.js';
import type { Schema, SchemaDocument } from './schema-document.js';
import { SchemaError } from './schema-error.js';

export interface StringBounds {
  /** Null: any content. */
  readonly language: Language | null;
  /** Length limits, in code points. */
  readonly min: number;
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
  refuse(schema: Schema, keyword: string, limit?: number | null): void;
}

/** `plain`: schemas without `$ref` and `allOf`, all of which must match. Throws {@link SchemaError}. */
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

function patternOf(context: CompilerContext, schema: Schema): Language[] {
  const { document, languages } = context;
  if (typeof schema.pattern !== 'string') return document.invalid(schema, 'pattern');
  try {
    return [languageOfPattern(languages, schema.pattern)];
  } catch (error) {
    if (!(error instanceof PatternError)) throw error;
    if (error.code === 'invalid_request') return document.invalid(schema, 'pattern');
    context.refuse(schema, 'pattern', error.limit);
    return [];
  }
}

/** Throws {@link SchemaError}. */
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

function textsAmong(languages: LanguageFactory, values: readonly unknown[]): Language {
  return languages.union(...values.flatMap((value) => (typeof value === 'string' ? [languages.text(value)] : [])));
}
