/**
 * Discriminators show that two `oneOf` branches exclude each other: a required member has disjoint values in both.
 *
 * The check is faster than comparing grammars.
 */

import { canonicalJson } from './literals.js';
import type { Schema, SchemaDocument } from './schema-document.js';

export interface Discriminators {
  /** Every value of the branch is an object. */
  readonly isObject: boolean;
  readonly required: ReadonlySet<unknown>;
  /** Canonical JSON of a member's possible values, by member name. */
  readonly values: ReadonlyMap<string, ReadonlySet<string>>;
}

/** Throws SchemaError on an invalid schema. */
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

/** Whether the discriminators prove that no value matches both branches. */
export function areDisjoint(one: Discriminators, other: Discriminators): boolean {
  if (!one.isObject) return false;
  for (const [name, values] of one.values) {
    const others = other.values.get(name);
    if (others === undefined || !(one.required.has(name) || other.required.has(name))) continue;
    if (![...values].some((value) => others.has(value))) return true;
  }
  return false;
}

/** Values of the member's `const` or `enum`; null without either. */
function namedBy(member: unknown): ReadonlySet<string> | null {
  if (typeof member !== 'object' || member === null) return null;
  const { const: only, enum: several } = member as Schema;
  if (only !== undefined) return new Set([canonicalJson(only)]);
  return Array.isArray(several) ? new Set(several.map(canonicalJson)) : null;
}
