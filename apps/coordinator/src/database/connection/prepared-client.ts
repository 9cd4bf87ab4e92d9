/**
 * `preparedClient`: a `pg` client class whose instances send repeated statements as prepared statements.
 *
 * PostgreSQL then parses them once per connection. Parsing large statements costs more than executing them.
 */
import pg from 'pg';

/** Execution of a statement from which on it is prepared. */
const MIN_EXECUTIONS = 4;
/** Maximum prepared statements, because the server stores them per connection. */
const MAX_PREPARED = 300;
/** Maximum statements whose executions are counted. At the maximum, counting restarts. */
const MAX_COUNTED = 2000;

/** Names of prepared statements, shared by all connections of a pool. */
class StatementNames {
  readonly #nameByText = new Map<string, string>();
  readonly #executionsByText = new Map<string, number>();

  /** Name of the prepared statement for an SQL text; undefined: the text is not prepared. */
  nameFor(text: string): string | undefined {
    const name = this.#nameByText.get(text);
    if (name !== undefined) return name;
    // A prepared `select *` fails after a migration has added a column, which a newer coordinator may do meanwhile.
    if (this.#nameByText.size >= MAX_PREPARED || text.includes('*')) return undefined;
    const seen = (this.#executionsByText.get(text) ?? 0) + 1;
    if (seen >= MIN_EXECUTIONS) {
      this.#executionsByText.delete(text);
      const fresh = `s${this.#nameByText.size}`;
      this.#nameByText.set(text, fresh);
      return fresh;
    }
    if (this.#executionsByText.size >= MAX_COUNTED) this.#executionsByText.clear();
    this.#executionsByText.set(text, seen);
    return undefined;
  }
}

/** Creates the class of a pool's connections. */
export function preparedClient(): typeof pg.Client {
  const names = new StatementNames();
  return class PreparedClient extends pg.Client {
    // `pg` has many overloads. Only the one that Kysely uses, with text and values, is changed.
    override query(...parameters: unknown[]): never {
      const [text, values, ...rest] = parameters;
      const name = typeof text === 'string' && Array.isArray(values) && values.length > 0 ? names.nameFor(text) : undefined;
      const call = name === undefined ? parameters : [{ name, text, values }, ...rest];
      return Reflect.apply(super.query, this, call) as never;
    }
  };
}
