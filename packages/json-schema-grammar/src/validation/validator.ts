/**
 * Validates complete values against a client's schema, without compiling the schema to code.
 *
 * Ignores `pattern` keywords, which could backtrack for hours. The grammar enforces them.
 */
import Schema from 'typebox/schema';
import { withTimeLimit } from './time-limit.js';

/** Returns a validator that ignores patterns. `root`: the document that references point into. */
export function schemaValidator(root: unknown, schema: unknown): (value: unknown) => boolean {
  const checked = { ...definitionsOf(root), allOf: [withoutPatterns(schema)] };
  return (value) => Schema.Check(checked, value);
}

/** Whether a value matches the schema, ignoring patterns; null after a timeout. */
export function isValidDocument(root: unknown, value: unknown): boolean | null {
  return withTimeLimit(() => Schema.Check(withoutPatterns(root) as object, value));
}

/** Definitions of the root, for references. Leaves out other members, because the validator reads even undefined `const` as a constraint. */
function definitionsOf(root: unknown): Readonly<Record<string, unknown>> {
  if (typeof root !== 'object' || root === null) return {};
  const definitions = Object.entries(root).filter(([name]) => name === '$defs' || name === 'definitions');
  return Object.fromEntries(definitions.map(([name, schemas]) => [name, schemasByName(schemas)]));
}

/** Keywords whose value maps client-chosen names to schemas. */
const SCHEMAS_BY_NAME = new Set(['properties', '$defs', 'definitions', 'dependentSchemas']);
/** Keywords whose meaning depends on `patternProperties`. */
const BY_PATTERN = new Set(['patternProperties', 'additionalProperties', 'unevaluatedProperties']);

/** Keywords whose value refers to another schema. */
const REFERENCES = new Set(['$ref', '$dynamicRef', '$recursiveRef']);

/** The schema without `pattern` and the keywords that depend on patterns. */
function withoutPatterns(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutPatterns);
  if (typeof schema !== 'object' || schema === null) return schema;
  const keywords = schema as Readonly<Record<string, unknown>>;
  // Entries instead of an object, because a member may be called `__proto__`.
  const members: [string, unknown][] = [];
  for (const [name, member] of Object.entries(keywords)) {
    if (name === 'const' || name === 'enum') members.push([name, member]);
    else if (
      name === 'pattern' ||
      (REFERENCES.has(name) && !targetsSchema(member)) ||
      (keywords.patternProperties !== undefined && BY_PATTERN.has(name))
    )
      continue;
    // Without the pattern, `not` would exclude more values.
    else if (name === 'not' && containsPattern(member)) continue;
    else if (name === 'oneOf' && containsPattern(member)) {
      if (keywords.anyOf === undefined) members.push(['anyOf', withoutPatterns(member)]);
    } else if (SCHEMAS_BY_NAME.has(name)) members.push([name, schemasByName(member)]);
    else members.push([name, withoutPatterns(member)]);
  }
  return Object.fromEntries(members);
}

/** Whether a reference points to a schema in this document, not to a value in `const` or `enum`. */
function targetsSchema(reference: unknown): boolean {
  return typeof reference === 'string' && /^#(?:\/(?!(?:const|enum)(?:\/|$))[^%/]*)*$/.test(reference);
}

function schemasByName(schemas: unknown): unknown {
  if (typeof schemas !== 'object' || schemas === null) return schemas;
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, withoutPatterns(schema)]));
}

function containsPattern(schema: unknown): boolean {
  if (typeof schema !== 'object' || schema === null) return false;
  return Object.entries(schema).some(
    ([name, member]) => (name === 'pattern' && typeof member === 'string') || name === 'patternProperties' || containsPattern(member),
  );
}
