/** `arrayRule` builds the grammar rule of an array: one rule per item that must be counted, then a rule for further items. */
import type { Term } from '../grammar/grammar.js';
import { canonicalJson, literalsOf } from './literals.js';
import { countOf } from './scalars.js';
import type { SchemaCompiler } from './schema-compiler.js';
import type { Schema } from './schema-document.js';
import { SchemaError } from './schema-error.js';

/** Maximum counted items. A larger `maxItems` is lowered to this number, a larger `minItems` refused. */
const MAX_ITEMS = 1000;
/** Maximum values of an item with `uniqueItems`, because the grammar has one rule per subset. */
const MAX_DISTINCT = 8;

/** `plain`: schemas without `$ref` and `allOf`, all of which must match. Throws SchemaError. */
export function arrayRule(compiler: SchemaCompiler, plain: readonly Schema[]): Term {
  const { document } = compiler;
  const min = Math.max(0, ...plain.map((schema) => countOf(document, schema, 'minItems') ?? 0));
  const max = Math.min(Infinity, ...plain.map((schema) => countOf(document, schema, 'maxItems') ?? Infinity));
  const tooLong = plain.find(({ minItems }) => typeof minItems === 'number' && minItems > MAX_ITEMS);
  if (tooLong !== undefined) throw new SchemaError('unsupported', document.path(tooLong, 'minItems'), MAX_ITEMS);
  const listed = Math.max(0, ...plain.map((schema) => prefixOf(compiler, schema).length));
  const itemAt = (index: number) => compiler.nestedValue(plain.flatMap((schema) => itemOf(compiler, schema, index)));
  const unique = plain.find(({ uniqueItems }) => uniqueItems === true);
  if (unique !== undefined && max > 1) {
    const distinct =
      listed > 0
        ? null
        : distinctValues(
            compiler,
            plain.flatMap((schema) => itemOf(compiler, schema, 0)),
          );
    if (distinct !== null) return uniqueRule(compiler, distinct, min, max);
    compiler.reportUnsupported(unique, 'uniqueItems');
  }
  return listRule(compiler, min, max, listed, itemAt);
}

/** Array of `min` to `max` items, of which the first `listed` have their own rules. Builds the rules from the last item to the first. */
function listRule({ builder, json }: SchemaCompiler, min: number, max: number, listed: number, itemAt: (index: number) => Term): Term {
  const close = [json.whitespace, ...builder.text(']')];
  const counted = Math.max(min, listed, max === Infinity ? 0 : Math.min(max, MAX_ITEMS));
  const furtherItem = itemAt(listed);
  const end = max === Infinity ? builder.reserve() : builder.rule(close);
  if (max === Infinity) builder.define(end, [close, [...builder.text(','), json.whitespace, furtherItem, end]]);
  let rest = end;
  let first = end;
  for (let written = Math.min(counted, max) - 1; written >= 0; written--) {
    const item = [json.whitespace, written < listed ? itemAt(written) : furtherItem, rest];
    const open = written >= min ? [close] : [];
    first = builder.rule(...open, item);
    rest = builder.rule(...open, [...builder.text(','), ...item]);
  }
  if (Math.min(counted, max) === 0 && max === Infinity) first = builder.rule(close, [json.whitespace, furtherItem, end]);
  if (min > max) first = builder.rule();
  return builder.rule([...builder.text('['), first]);
}

/** Schemas of the first items. */
function prefixOf({ document }: SchemaCompiler, schema: Schema): readonly unknown[] {
  // Older drafts call the keyword `items`.
  const prefix = schema.prefixItems ?? (Array.isArray(schema.items) ? schema.items : []);
  return Array.isArray(prefix) ? prefix : document.invalid(schema, 'prefixItems');
}

/** Schemas that apply to the item at an index. */
function itemOf(compiler: SchemaCompiler, schema: Schema, index: number): readonly (Schema | boolean)[] {
  const { document } = compiler;
  const prefix = prefixOf(compiler, schema);
  const keyword = schema.prefixItems === undefined && Array.isArray(schema.items) ? 'additionalItems' : 'items';
  if (index < prefix.length) {
    return [document.inner(schema, prefix[index], keyword === 'items' ? 'prefixItems' : 'items', String(index))];
  }
  return schema[keyword] === undefined ? [] : [document.inner(schema, schema[keyword], keyword)];
}

/** All possible values of an item; null if not known or more than `MAX_DISTINCT`. */
function distinctValues(compiler: SchemaCompiler, items: readonly (Schema | boolean)[]): readonly unknown[] | null {
  const plain = compiler.document.flatten(items) ?? [];
  const isChoice = plain.some(({ anyOf, oneOf }) => anyOf !== undefined || oneOf !== undefined);
  const named = isChoice ? null : literalsOf(compiler, plain);
  const types = compiler.document.types(plain);
  const values = named ?? (!isChoice && types.size === 1 && types.has('boolean') ? [true, false] : null);
  return values === null || values.length > MAX_DISTINCT
    ? null
    : [...new Map(values.map((value) => [canonicalJson(value), value])).values()];
}

/** Array of distinct values. Each subset of values has a rule: `after[subset]` continues after the subset was written. */
function uniqueRule({ builder, json }: SchemaCompiler, values: readonly unknown[], min: number, max: number): Term {
  const close = [json.whitespace, ...builder.text(']')];
  const after = Array.from({ length: 2 ** values.length }, () => builder.reserve());
  const next = (written: number, before: readonly Term[]) =>
    values.flatMap((value, index) =>
      (written & (1 << index)) === 0 ? [[...before, json.whitespace, ...json.literal(value), after[written | (1 << index)] as Term]] : [],
    );
  for (const [written, rule] of after.entries()) {
    const count = written.toString(2).replaceAll('0', '').length;
    builder.define(rule, [...(count >= min && count <= max ? [close] : []), ...(count < max ? next(written, builder.text(',')) : [])]);
  }
  const first = builder.rule(...(min === 0 ? [close] : []), ...(max > 0 ? next(0, []) : []));
  return builder.rule([...builder.text('['), first]);
}
