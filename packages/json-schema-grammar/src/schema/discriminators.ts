/** Discriminators of `oneOf` branches: required members with disjoint values. Faster than comparing grammars. */

import { canonicalJson } from './literals.js';
import type { Schema, SchemaDocument } from './schema-document.js';

export interface Discriminators {
  /** Every text of the branch is an object, so its member constraints apply. */
  readonly isObject: boolean;
  readonly required: ReadonlySet<unknown>;
  /** Canonical texts of a member's possible values. */
  readonly values: ReadonlyMap<string, ReadonlySet<string>>;
}

/** Throws SchemaError for an invalid schema. */
export function discriminatorsOf(document: SchemaDocument, branch: Schema | boolean): Discriminators {
  const plain = document.flatten([branch]) ?? [];
  const values = new Map<string, ReadonlySet<string>>();
  for (const { properties } of plain) {
    if (typeof properties !== 'object' || properties === null) continue;
    for (const [name, member] of Object.entries(properties)) {
      const named = namedBy(member);
      if (named !== null) values.set(name, named);
    }
  }
  const isObject = plain.some(({ type }) => type === 'object');
  return { isObject, required: new Set(plain.flatMap(({ required }) => (Array.isArray(required) ? required : []))), values };
}

/** Whether no text of one branch matches the other. */
export function areDisjoint(one: Discriminators, other: Discriminators): boolean {
  if (!one.isObject) return false;
  for (const [name, values] of one.values) {
    const others = other.values.get(name);
    if (others === undefined || !(one.required.has(name) || other.required.has(name))) continue;
    if (![...values].some((value) => others.has(value))) return true;
  }
  return false;
}

/** Null where the member's own schema names no values. */
function namedBy(member: unknown): ReadonlySet<string> | null {
  if (typeof member !== 'object' || member === null) return null;
  const { const: only, enum: several } = member as Schema;
  if (only !== undefined) return new Set([canonicalJson(only)]);
  return Array.isArray(several) ? new Set(several.map(canonicalJson)) : null;
}
