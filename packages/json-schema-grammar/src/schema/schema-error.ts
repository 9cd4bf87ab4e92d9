/** Why a schema is refused, and where. */

/** The schema is none (`invalid_request`), or asks for more than the engine can promise (`unsupported`). */
export class SchemaError extends Error {
  /** `path`: steps from the schema's root to the keyword at fault. */
  constructor(
    readonly code: 'invalid_request' | 'unsupported',
    readonly path: readonly string[],
    /** Maximum of the keyword's value, if exceeded. */
    readonly limit: number | null = null,
  ) {
    super(`the schema is refused: ${code} at ${path.join('.')}`);
    this.name = 'SchemaError';
  }
}
