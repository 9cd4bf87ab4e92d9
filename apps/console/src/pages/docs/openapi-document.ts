/** Types for the parts of an OpenAPI 3.1 document that the API reference shows, and functions that read them. */

export interface OpenApiDocument {
  readonly info: { readonly version: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

export interface Operation {
  readonly summary: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, MediaType>> };
  readonly responses: Readonly<Record<string, ResponseObject>>;
  /** Absent: requires an API key. Empty: requires no credentials. */
  readonly security?: readonly unknown[];
  readonly 'x-codeSamples'?: readonly { readonly label: string; readonly source: string }[];
}

interface Parameter {
  readonly in: string;
  readonly name: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema?: Schema;
}

export interface ResponseObject {
  readonly description: string;
  readonly content?: Readonly<Record<string, MediaType>>;
}

interface MediaType {
  readonly schema?: Schema;
  readonly examples?: Readonly<Record<string, { readonly summary?: string; readonly value: unknown }>>;
}

/** Subset of JSON Schema. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
}

interface NamedOperation {
  /** HTML id, for links to the operation. */
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

/** Operations by tag, in the order of the document. */
export function operationsByTag({ paths }: OpenApiDocument): ReadonlyMap<string, readonly NamedOperation[]> {
  const groups = new Map<string, NamedOperation[]>();
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const tag = operation.tags[0] ?? 'Other';
      const id = `${method}${path.replaceAll(/[^a-z0-9]+/gi, '-')}`.replace(/-$/, '');
      groups.set(tag, [...(groups.get(tag) ?? []), { id, method: method.toUpperCase(), path, operation }]);
    }
  }
  return groups;
}

export type Schemas = OpenApiDocument['components']['schemas'];

/** Resolves a reference to its schema. Other schemas are returned unchanged. */
export function resolveSchema(schema: Schema, schemas: Schemas): Schema {
  const name = schema.$ref?.split('/').at(-1);
  return name === undefined ? schema : (schemas[name] ?? {});
}

/** Describes a type, such as `array of string or null`. */
export function typeText(schema: Schema): string {
  if (schema.$ref !== undefined) return schema.$ref.split('/').at(-1) ?? 'object';
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(' or ');
  if (schema.anyOf !== undefined) return [...new Set(schema.anyOf.map(typeText))].join(' or ');
  if (schema.type === 'array') return schema.items === undefined ? 'array' : `array of ${typeText(schema.items)}`;
  if (schema.type === undefined) return schema.properties === undefined ? 'any value' : 'object';
  return [schema.type].flat().join(' or ');
}

/** Finds the object schema in a schema: the schema itself, the items of an array, or the first alternative that is an object. */
export function objectWithin(schema: Schema, schemas: Schemas): Schema | null {
  const resolved = resolveSchema(schema, schemas);
  if (resolved.properties !== undefined) return resolved;
  if (resolved.items !== undefined) return objectWithin(resolved.items, schemas);
  for (const alternative of resolved.anyOf ?? []) {
    const found = objectWithin(alternative, schemas);
    if (found !== null) return found;
  }
  return null;
}
