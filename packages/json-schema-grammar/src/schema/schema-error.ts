/** `SchemaError`: reason and keyword for which a schema is rejected. */

/** `invalid_request`: not a valid schema. `unsupported`: the schema has constraints that a grammar cannot guarantee. */
export class SchemaError extends Error {
  /** `path`: from the root of the schema to the rejected keyword; empty if the whole schema is too large. */
  constructor(
    readonly code: 'invalid_request' | 'unsupported',
    readonly path: readonly string[],
    /** Maximum value of the keyword, if the schema exceeds the maximum; otherwise null. */
    readonly limit: number | null = null,
  ) {
    super(`the schema is refused: ${code} at ${path.join('.')}`);
    this.name = 'SchemaError';
  }
}
