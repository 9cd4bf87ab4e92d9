/**
 * `preparedClient`: a PostgreSQL connection that prepares repeated statements, because planning large statements costs more than execution.
 */
import pg from 'pg';

/** Executions before a statement is prepared, and maximum prepared statements, which the server stores per connection. */
const MIN_EXECUTIONS = 4;
const MAX_PREPARED = 300;
/** Maximum number of counted texts; beyond this, counting restarts. */
const MAX_COUNTED = 2000;

/** Names of prepared statements, shared by all connections of a pool. */
export class StatementNames {
  readonly #names = new Map<string, string>();
  readonly #seen = new Map<string, number>();

  /** Name of the prepared statement for a text; undefined for a rare text. */
  nameFor(text: string): string | undefined {
    const name = this.#names.get(text);
    if (name !== undefined) return name;
    // A prepared `select *` fails after a migration, perhaps of a newer program, has added a column.
    if (this.#names.size >= MAX_PREPARED || text.includes('*')) return undefined;
    const seen = (this.#seen.get(text) ?? 0) + 1;
    if (seen >= MIN_EXECUTIONS) {
      this.#seen.delete(text);
      const fresh = `s${this.#names.size}`;
      this.#names.set(text, fresh);
      return fresh;
    }
    if (this.#seen.size >= MAX_COUNTED) this.#seen.clear();
    this.#seen.set(text, seen);
    return undefined;
  }
}

/** The class of such connections, for a pool. */
export function preparedClient(names: StatementNames): typeof pg.Client {
  return class PreparedClient extends pg.Client {
    // Overloads of the driver. Only the form that Kysely uses, text and values, is changed.
    override query(...parameters: unknown[]): never {
      const [text, values, ...rest] = parameters;
      const name = typeof text === 'string' && Array.isArray(values) && values.length > 0 ? names.nameFor(text) : undefined;
      const call = name === undefined ? parameters : [{ name, text, values }, ...rest];
      return Reflect.apply(super.query, this, call) as never;
    }
  };
}
