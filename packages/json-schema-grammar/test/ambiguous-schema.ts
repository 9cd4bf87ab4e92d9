/** A schema of a few hundred bytes whose texts soon match thousands of grammar positions in parallel. */

/** Nested lists, each one of ten indistinguishable alternatives. `length`: length of a preceding text. */
export function ambiguousSchema(length: number): Record<string, unknown> {
  return nestedLists(length, (items) => ({
    anyOf: Array.from({ length: 10 }, (_, index) => ({ type: 'array', minItems: 1, maxItems: index + 1, items })),
  }));
}

/** The same values, without alternatives: checking a value takes milliseconds instead of seconds. */
export function unambiguousSchema(length: number): Record<string, unknown> {
  return nestedLists(length, (items) => ({ type: 'array', minItems: 1, maxItems: 10, items }));
}

function nestedLists(length: number, listOf: (items: object) => object): Record<string, unknown> {
  const $defs: Record<string, unknown> = { list0: { type: 'integer' } };
  for (let depth = 1; depth <= 6; depth++) {
    $defs[`list${depth}`] = listOf({ $ref: `#/$defs/list${depth - 1}` });
  }
  const properties = { before: { const: 'x'.repeat(length) }, list: { $ref: '#/$defs/list6' } };
  return { $defs, type: 'object', properties, required: ['before', 'list'], additionalProperties: false };
}
