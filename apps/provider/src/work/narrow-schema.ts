/**
 * From a client's JSON Schema to one that the engine's grammars can express in full. Whatever fits the narrow one fits the
 * client's too: optional members are always written and none are added. A keyword that would be lost is refused instead.
 */
import type { GrammarSchema } from '../engine/messages.js';

/** The schema is none, or asks for more than a grammar can promise. */
export class SchemaError extends Error {
  constructor(readonly code: 'invalid_request' | 'unsupported') {
    super(`the schema is refused: ${code}`);
    this.name = 'SchemaError';
  }
}

const MAX_DEPTH = 32;
const MAX_SCHEMAS = 2000;
/** Counts of items and characters; a grammar spells each of them out. */
const MAX_REPEATS = 1000;

/** Say nothing of what is valid. Formats are notes too, except those that grammars know. */
const NOTES = '$schema $id $comment $defs definitions title description default examples deprecated readOnly writeOnly'.split(' ');
const SCALARS = ['string', 'number', 'integer', 'boolean', 'null'];
const KEYWORDS = new Map<string, readonly string[]>([
  ['object', ['properties', 'required', 'additionalProperties']],
  ['array', ['items', 'minItems', 'maxItems']],
  ['string', ['minLength', 'maxLength', 'format']],
  ['number', []],
  ['integer', []],
  ['boolean', []],
  ['null', []],
]);
const OBJECT: GrammarSchema = { type: 'object', additionalProperties: true };
const ANYTHING: GrammarSchema = {
  oneOf: [...SCALARS.filter((type) => type !== 'integer').map((type) => ({ type })), { type: 'array' }, OBJECT],
};

type Schema = Readonly<Record<string, unknown>>;

/** Throws {@link SchemaError}. */
export function narrowSchema(schema: unknown): GrammarSchema {
  return new Narrowing(schema).narrow(schema, 0, []);
}

class Narrowing {
  #schemas = 0;

  constructor(private readonly root: unknown) {}

  narrow(schema: unknown, depth: number, references: readonly string[]): GrammarSchema {
    this.#schemas++;
    if (depth > MAX_DEPTH || this.#schemas > MAX_SCHEMAS) throw new SchemaError('unsupported');
    if (schema === true) return ANYTHING;
    if (schema === false) throw new SchemaError('unsupported');
    const members = object(schema);
    const narrow = (inner: unknown) => this.narrow(inner, depth + 1, references);
    if (members.$ref !== undefined) {
      only(members, ['$ref']);
      const reference = members.$ref;
      if (typeof reference !== 'string') throw new SchemaError('invalid_request');
      // A grammar could recurse, but a model may then never find an end.
      if (references.includes(reference)) throw new SchemaError('unsupported');
      return this.narrow(this.#referred(reference), depth + 1, [...references, reference]);
    }
    if (members.anyOf !== undefined) {
      only(members, ['anyOf']);
      return { oneOf: list(members.anyOf).map(narrow) };
    }
    if (members.const !== undefined) {
      only(members, ['const', 'type']);
      return { enum: valuesOf(members, [members.const]) };
    }
    if (members.enum !== undefined) {
      only(members, ['enum', 'type']);
      return { enum: valuesOf(members, list(members.enum)) };
    }
    const types = typesOf(members);
    only(members, ['type', ...types.flatMap((type) => KEYWORDS.get(type) ?? [])]);
    if (types.length === 0) return ANYTHING;
    const [first, ...others] = types.map((type) => narrowType(type, members, narrow));
    return first !== undefined && others.length === 0 ? first : { oneOf: first === undefined ? [] : [first, ...others] };
  }

  #referred(reference: string): unknown {
    const [, place, name] = /^#\/(\$defs|definitions)\/([^/~%]+)$/.exec(reference) ?? [];
    if (place === undefined || name === undefined) throw new SchemaError('unsupported');
    const definitions = object(object(this.root)[place]);
    if (!Object.hasOwn(definitions, name)) throw new SchemaError('invalid_request');
    return definitions[name];
  }
}

function typesOf(schema: Schema): readonly string[] {
  const { type } = schema;
  if (type === undefined) return schema.properties !== undefined ? ['object'] : schema.items !== undefined ? ['array'] : [];
  const types = typeof type === 'string' ? [type] : list(type);
  return types.map((name) => {
    if (typeof name !== 'string' || !KEYWORDS.has(name)) throw new SchemaError('invalid_request');
    return name;
  });
}

function narrowType(type: string, schema: Schema, narrow: (schema: unknown) => GrammarSchema): GrammarSchema {
  switch (type) {
    case 'object':
      return narrowObject(schema, narrow);
    case 'array':
      return { type, items: narrow(schema.items ?? true), ...counts(schema, 'minItems', 'maxItems') };
    case 'string':
      if (['date', 'time', 'date-time'].includes(schema.format as string)) return { type, format: schema.format };
      return { type, ...counts(schema, 'minLength', 'maxLength') };
    default:
      return { type };
  }
}

function narrowObject(schema: Schema, narrow: (schema: unknown) => GrammarSchema): GrammarSchema {
  const others = schema.additionalProperties ?? true;
  const given = Object.entries(object(schema.properties ?? {}));
  const names = new Set(given.map(([name]) => name));
  const required = schema.required === undefined ? [] : list(schema.required);
  const missing = required
    .filter((name) => typeof name !== 'string' || !names.has(name))
    .map((name) => {
      if (typeof name !== 'string') throw new SchemaError('invalid_request');
      return [name, others] as const;
    });
  const properties = [...given, ...missing];
  if (properties.length === 0) return others === false ? { type: 'object' } : { type: 'object', additionalProperties: narrow(others) };
  return { type: 'object', properties: Object.fromEntries(properties.map(([name, inner]) => [spelled(name), narrow(inner)])) };
}

function counts(schema: Schema, least: string, most: string): GrammarSchema {
  const [from, to] = [least, most].map((name) => {
    const value = schema[name];
    if (value === undefined) return undefined;
    if (!Number.isInteger(value) || (value as number) < 0) throw new SchemaError('invalid_request');
    if ((value as number) > MAX_REPEATS) throw new SchemaError('unsupported');
    return value as number;
  });
  if (from !== undefined && to !== undefined && from > to) throw new SchemaError('invalid_request');
  return { ...(from === undefined ? {} : { [least]: from }), ...(to === undefined ? {} : { [most]: to }) };
}

function only(schema: Schema, keywords: readonly string[]): void {
  for (const name of Object.keys(schema)) {
    if (!keywords.includes(name) && !NOTES.includes(name)) throw new SchemaError('unsupported');
  }
}

function object(value: unknown): Schema {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new SchemaError('invalid_request');
  return value as Schema;
}

function list(value: unknown): readonly unknown[] {
  if (!Array.isArray(value) || value.length === 0) throw new SchemaError('invalid_request');
  return value;
}

/** The engine would write other control characters as they are, which is no JSON. */
function spelled(text: string): string {
  if (/[^\P{Cc}\n\r\t]|\p{Surrogate}/u.test(text)) throw new SchemaError('unsupported');
  return text;
}

/** Those of the values that are of the schema's type, which need not be all. */
function valuesOf(schema: Schema, values: readonly unknown[]): readonly unknown[] {
  const types = schema.type === undefined ? null : typesOf(schema);
  if (values.some((value) => typeof value === 'object' && value !== null)) throw new SchemaError('unsupported');
  const allowed = values.filter((value) => types === null || types.some((type) => isOfType(value, type)));
  if (allowed.length === 0) throw new SchemaError('unsupported');
  return allowed.map((value) => (typeof value === 'string' ? spelled(value) : value));
}

function isOfType(value: unknown, type: string): boolean {
  if (type === 'integer') return Number.isInteger(value);
  return value === null ? type === 'null' : typeof value === type;
}
