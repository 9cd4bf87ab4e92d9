/** A schema of a few hundred bytes whose texts soon match thousands of grammar positions in parallel. */

/** Nested lists, each one of ten indistinguishable alternatives. `length`: length of a preceding text. */
export function ambiguousSchema(length: number): Record<string, unknown> {
  const $defs: Record<string, unknown> = { list0: { type: 'integer' } };
  for (let depth = 1; depth <= 6; depth++) {
    const items = { $ref: `#/$defs/list${depth - 1}` };
    $defs[`list${depth}`] = {
      anyOf: Array.from({ length: 10 }, (_, index) => ({ type: 'array', minItems: 1, maxItems: index + 1, items })),
    };
  }
  const properties = { before: { const: 'x'.repeat(length) }, list: { $ref: '#/$defs/list6' } };
  return { $defs, type: 'object', properties, required: ['before', 'list'], additionalProperties: false };
}
