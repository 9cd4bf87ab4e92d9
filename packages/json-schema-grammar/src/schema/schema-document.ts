/**
 * `SchemaDocument` resolves `$ref` and `allOf` of a JSON Schema, and records the path of each subschema for error messages.
 *
 * The result is a conjunction: a list of plain schemas, all of which must match.
 */
import { SchemaError } from './schema-error.js';

export type Schema = Readonly<Record<string, unknown>>;
export type JsonType = 'null' | 'boolean' | 'integer' | 'number' | 'string' | 'array' | 'object';

const JSON_TYPES: readonly JsonType[] = ['null', 'boolean', 'integer', 'number', 'string', 'array', 'object'];
/** Keywords that imply a type. Without `type`, a schema allows the implied types; if there are none, all types. */
const TYPE_HINTS: readonly (readonly [JsonType, readonly string[]])[] = [
  ['object', ['properties', 'required', 'additionalProperties', 'propertyNames', 'minProperties', 'maxProperties']],
  ['array', ['items', 'prefixItems', 'minItems', 'maxItems', 'uniqueItems']],
  ['string', ['pattern', 'minLength', 'maxLength', 'format']],
  ['number', ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf']],
];
/** Maximum schemas per request. Compilation blocks other requests meanwhile. */
const MAX_SCHEMAS = 4000;

export class SchemaDocument {
  /** Path of each known schema from the root. */
  readonly #paths = new WeakMap<object, readonly string[]>();
  /** Results of {@link without}, by schema and keyword. */
  readonly #reduced = new WeakMap<Schema, Map<string, Schema>>();
  /** Number of each schema, for {@link key}. */
  readonly #ids = new WeakMap<object, number>();
  /** Number of schemas with an id. */
  #idCount = 0;

  constructor(readonly root: unknown) {
    if (typeof root === 'object' && root !== null) this.#paths.set(root, []);
  }

  /** Path from the root to a schema, followed by `steps`. */
  path(schema: Schema, ...steps: readonly string[]): readonly string[] {
    return [...(this.#paths.get(schema) ?? []), ...steps];
  }

  /** Throws {@link SchemaError} for a keyword with an invalid value. */
  invalid(schema: Schema, keyword: string): never {
    throw new SchemaError('invalid_request', this.path(schema, keyword));
  }

  /** Key of a set of schemas: equal sets have equal keys. */
  key(schemas: readonly Schema[]): string {
    return [...new Set(schemas.map((schema) => this.#id(schema)))].sort((a, b) => a - b).join();
  }

  /** The value as a schema in `parent`, at the path `steps`, which is recorded. Throws {@link SchemaError} if the value is not a schema. */
  inner(parent: Schema, value: unknown, ...steps: readonly string[]): Schema | boolean {
    if (typeof value === 'boolean') return value;
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw new SchemaError('invalid_request', this.path(parent, ...steps));
    }
    if (!this.#paths.has(value)) this.#paths.set(value, this.path(parent, ...steps));
    return value as Schema;
  }

  /** Subschemas of a keyword such as `anyOf`. */
  list(parent: Schema, keyword: string): readonly (Schema | boolean)[] {
    const value = parent[keyword];
    if (!Array.isArray(value) || value.length === 0) return this.invalid(parent, keyword);
    return value.map((each: unknown, index) => this.inner(parent, each, keyword, String(index)));
  }

  /** Copy of a schema without one keyword. Cached, so repeated calls return the same object. */
  without(schema: Schema, keyword: string): Schema {
    const known = this.#reduced.get(schema) ?? new Map<string, Schema>();
    this.#reduced.set(schema, known);
    let reduced = known.get(keyword);
    if (reduced === undefined) {
      reduced = Object.fromEntries(Object.entries(schema).filter(([name]) => name !== keyword));
      this.#paths.set(reduced, this.path(schema));
      known.set(keyword, reduced);
    }
    return reduced;
  }

  /** Resolves a conjunction to plain schemas, without `$ref` and `allOf`; null if no value matches. */
  flatten(schemas: readonly (Schema | boolean)[]): readonly Schema[] | null {
    const plain: Schema[] = [];
    const seen = new Set<Schema>();
    const waiting = [...schemas].reverse();
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      if (next === false) return null;
      if (next === true || seen.has(next)) continue;
      seen.add(next);
      let schema = next;
      if (schema.$ref !== undefined) {
        waiting.push(this.#resolve(schema));
        schema = this.without(schema, '$ref');
      }
      if (schema.allOf !== undefined) {
        waiting.push(...this.list(schema, 'allOf'));
        schema = this.without(schema, 'allOf');
      }
      if (Object.keys(schema).length > 0) plain.push(schema);
    }
    return plain;
  }

  /** Types that all schemas allow. Never contains both `number` and `integer`. */
  types(schemas: readonly Schema[]): ReadonlySet<JsonType> {
    let types: ReadonlySet<JsonType> | null = null;
    for (const schema of schemas) {
      if (schema.type === undefined) continue;
      const ownTypes = this.#typesOf(schema);
      types = types === null ? ownTypes : new Set([...commonTypes(types, ownTypes)]);
    }
    if (types !== null) return types;
    const hinted = TYPE_HINTS.filter(([, keywords]) => schemas.some((schema) => keywords.some((keyword) => schema[keyword] !== undefined)));
    return new Set(hinted.length > 0 ? hinted.map(([kind]) => kind) : JSON_TYPES.filter((kind) => kind !== 'integer'));
  }

  /** Types in the keyword `type`. */
  #typesOf(schema: Schema): ReadonlySet<JsonType> {
    const { type } = schema;
    const names: readonly unknown[] = Array.isArray(type) ? type : [type];
    if (names.length === 0) return this.invalid(schema, 'type');
    const types = new Set<JsonType>();
    for (const name of names) types.add(JSON_TYPES.find((kind) => kind === name) ?? this.invalid(schema, 'type'));
    if (types.has('number')) types.delete('integer');
    return types;
  }

  /** Target of `$ref`. Supports `#` and JSON Pointers (RFC 6901) into this document. */
  #resolve(schema: Schema): Schema | boolean {
    const reference = schema.$ref;
    if (typeof reference !== 'string') return this.invalid(schema, '$ref');
    if (reference !== '#' && !reference.startsWith('#/')) throw new SchemaError('unsupported', this.path(schema, '$ref'));
    let value: unknown = this.root;
    const steps = reference
      .split('/')
      .slice(1)
      .map((step) => this.#decodeStep(schema, step));
    for (const step of steps) {
      if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return this.invalid(schema, '$ref');
      value = (value as Schema)[step];
    }
    if (typeof value === 'object' && value !== null && !this.#paths.has(value)) this.#paths.set(value, steps);
    return this.inner(schema, value, '$ref');
  }

  /** Decodes a step of the JSON Pointer in `$ref`. */
  #decodeStep(schema: Schema, step: string): string {
    try {
      return decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~');
    } catch {
      return this.invalid(schema, '$ref');
    }
  }

  #id(schema: Schema): number {
    let id = this.#ids.get(schema);
    if (id === undefined) {
      if (this.#idCount >= MAX_SCHEMAS) throw new SchemaError('unsupported', []);
      id = this.#idCount++;
      this.#ids.set(schema, id);
    }
    return id;
  }
}

/** The narrowest type of a JSON value. */
export function jsonTypeOf(value: unknown): JsonType {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return JSON_TYPES.find((kind) => kind === typeof value) ?? 'object';
}

/** Types of the values that have a type of both sets. */
function* commonTypes(a: ReadonlySet<JsonType>, b: ReadonlySet<JsonType>): Generator<JsonType> {
  for (const kind of a) {
    if (b.has(kind)) yield kind;
    else if (kind === 'integer' && b.has('number')) yield kind;
    else if (kind === 'number' && b.has('integer')) yield 'integer';
  }
}
