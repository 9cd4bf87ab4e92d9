/**
 * Holds finished values against the client's schema, with a validator that interprets it: a schema is never compiled to
 * code here. Patterns are left to the grammar, because a client's pattern can keep a backtracking engine busy for hours.
 */
import Schema from 'typebox/schema';

/** Whether a value fits the schema but for its patterns. `root` is where references lead. */
export function fitsSchema(root: unknown, schema: unknown, value: unknown): boolean {
  return Schema.Check({ ...definitionsOf(root), allOf: [withoutPatterns(schema)] }, value);
}

/** Whether a value fits a whole document but for its patterns. */
export function fitsDocument(root: unknown, value: unknown): boolean {
  return Schema.Check(withoutPatterns(root) as object, value);
}

/** Members of the root that references lead to. Nothing else of it is kept: the validator takes even an undefined `const` for a demand. */
function definitionsOf(root: unknown): Readonly<Record<string, unknown>> {
  if (typeof root !== 'object' || root === null) return {};
  const definitions = Object.entries(root).filter(([name]) => name === '$defs' || name === 'definitions');
  return Object.fromEntries(definitions.map(([name, schemas]) => [name, withoutPatterns(schemas)]));
}

function withoutPatterns(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutPatterns);
  if (typeof schema !== 'object' || schema === null) return schema;
  const kept: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(schema)) {
    if (name === 'const' || name === 'enum') kept[name] = member;
    else if (name === 'pattern' && typeof member === 'string') continue;
    // Without the pattern they would mean something else.
    else if (name === 'not' && holdsPattern(member)) continue;
    else if (name === 'oneOf' && holdsPattern(member)) kept.anyOf ??= withoutPatterns(member);
    else kept[name] = withoutPatterns(member);
  }
  return kept;
}

function holdsPattern(schema: unknown): boolean {
  if (typeof schema !== 'object' || schema === null) return false;
  return Object.entries(schema).some(([name, member]) => (name === 'pattern' && typeof member === 'string') || holdsPattern(member));
}
