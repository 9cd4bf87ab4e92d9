/** `literalsOf` reads the values that `const` and `enum` allow. */

import { withTimeLimit } from '../validation/time-limit.js';
import { schemaValidator } from '../validation/validator.js';
import type { SchemaCompiler } from './schema-compiler.js';
import type { Schema, SchemaDocument } from './schema-document.js';
import { SchemaError } from './schema-error.js';

/** Values that match all schemas of a conjunction; null if no schema has `const` or `enum`. Throws SchemaError. */
export function literalsOf(compiler: SchemaCompiler, plain: readonly Schema[]): readonly unknown[] | null {
  const withValues = plain.filter((schema) => schema.const !== undefined || schema.enum !== undefined);
  const [first, ...others] = withValues.map((schema) => valuesOf(compiler.document, schema));
  if (first === undefined) return null;
  compiler.countChecks(first.size);
  const matches = matcherOf(compiler, plain);
  const allowed = withTimeLimit(() =>
    [...first].flatMap(([json, value]) => (others.every((values) => values.has(json)) && matches(value) ? [value] : [])),
  );
  if (allowed === null) throw new SchemaError('unsupported', []);
  return allowed;
}

/** Values of a schema's `const` and `enum`, by canonical JSON. */
export function valuesOf(document: SchemaDocument, schema: Schema): ReadonlyMap<string, unknown> {
  const { const: only, enum: several } = schema;
  if (several !== undefined && (!Array.isArray(several) || several.length === 0)) document.invalid(schema, 'enum');
  const values = several === undefined ? [only] : (several as readonly unknown[]);
  const byJson = new Map(values.map((value) => [canonicalJson(value), value]));
  if (only === undefined) return byJson;
  const json = canonicalJson(only);
  return new Map(byJson.has(json) ? [[json, only]] : []);
}

/** Returns a check of all keywords except `const` and `enum`. */
function matcherOf(compiler: SchemaCompiler, plain: readonly Schema[]): (value: unknown) => boolean {
  const { document, languages } = compiler;
  const others = plain
    .map((schema) => document.without(document.without(schema, 'enum'), 'const'))
    .filter((schema) => Object.keys(schema).length > 0);
  if (others.length === 0) return () => true;
  const { language, min, max } = compiler.stringBounds(others);
  const isValid = schemaValidator(document.root, { allOf: others });
  return (value) => {
    if (typeof value === 'string') {
      const length = [...value].length;
      if (length < min || length > max || (language !== null && !languages.contains(language, value))) return false;
    }
    return isValid(value);
  };
}

/** JSON text that is equal for equal values, regardless of member order. */
export function canonicalJson(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson)}]`;
  const members = Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member)}`);
  return `{${members.sort()}}`;
}
