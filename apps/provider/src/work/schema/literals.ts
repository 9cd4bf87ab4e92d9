/** Values that `const` and `enum` name, as far as the rest of a conjunction lets them be. */
import type { SchemaCompiler } from './compile.js';
import type { Schema } from './conjunction.js';
import { fitsSchema } from './validator.js';

/** Null where no schema names its values. Throws SchemaError. */
export function literalsOf(compiler: SchemaCompiler, plain: readonly Schema[]): readonly unknown[] | null {
  const naming = plain.filter((schema) => schema.const !== undefined || schema.enum !== undefined);
  const [first, ...others] = naming.map((schema) => namedBy(compiler, schema));
  if (first === undefined) return null;
  const distinct = [...new Map(first.map((value) => [canonical(value), value])).values()];
  return distinct.filter(
    (value) => others.every((values) => values.some((other) => canonical(other) === canonical(value))) && fits(compiler, plain, value),
  );
}

function namedBy({ document }: SchemaCompiler, schema: Schema): readonly unknown[] {
  const { const: only, enum: several } = schema;
  if (several !== undefined && (!Array.isArray(several) || several.length === 0)) document.invalid(schema, 'enum');
  const values = several === undefined ? [only] : (several as readonly unknown[]);
  return only === undefined ? values : values.filter((value) => canonical(value) === canonical(only));
}

function fits(compiler: SchemaCompiler, plain: readonly Schema[], value: unknown): boolean {
  if (typeof value === 'string') {
    const { language, least, most } = compiler.stringBounds(plain);
    const length = [...value].length;
    if (length < least || length > most || (language !== null && !compiler.languages.has(language, value))) return false;
  }
  return fitsSchema(compiler.document.root, { allOf: plain }, value);
}

/** Equal for equal JSON values, in whatever order their members are. */
export function canonical(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical)}]`;
  const members = Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`);
  return `{${members.sort()}}`;
}
