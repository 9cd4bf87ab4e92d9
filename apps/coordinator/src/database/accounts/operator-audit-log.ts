/** `OperatorAuditLog`: log of operators' actions. A row is written before the action, and gets the outcome afterwards. */
import { randomUUID } from 'node:crypto';
import { isAfterPosition } from '../row-position.js';
import type { Database, Tables } from '../tables.js';
import type { TimeSpan } from '../time-span.js';

export interface OperatorAction {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** `account:<id>` or `key:<id>`. */
  readonly operator: string;
  readonly action: string;
  /** Id of what the action changes. */
  readonly subject: string | null;
  /** JSON. */
  readonly details: string | null;
  /** `done`, an error code, or null if the outcome is unknown. */
  readonly outcome: string | null;
}

export class OperatorAuditLog {
  readonly #database: Database;
  readonly #now: () => number;

  constructor(options: { database: Database; now: () => number }) {
    this.#database = options.database;
    this.#now = options.now;
  }

  /** Logs an action before its start and returns the id of the row. */
  async begin(action: Pick<OperatorAction, 'operator' | 'action' | 'subject' | 'details'>): Promise<string> {
    const id = randomUUID();
    await this.#database
      .insertInto('operator_actions')
      .values({ id, at: this.#now(), ...action, outcome: null })
      .execute();
    return id;
  }

  /** Records the outcome. `subject`: id of a created object, which was unknown when the action began. */
  async end(id: string, outcome: string, subject?: string): Promise<void> {
    const changed = subject === undefined ? { outcome } : { outcome, subject };
    await this.#database.updateTable('operator_actions').set(changed).where('id', '=', id).execute();
  }

  /** Newest first. `subject`: only actions on this subject, or null. `after`: position of the last action of the page before, or null. */
  async list(options: {
    readonly span?: TimeSpan;
    readonly subject: string | null;
    readonly limit: number;
    readonly after: { readonly at: number; readonly id: string } | null;
  }): Promise<OperatorAction[]> {
    const { subject, limit, after, span } = options;
    const { from = null, to = null } = span ?? {};
    let query = this.#database.selectFrom('operator_actions').selectAll();
    if (subject !== null) query = query.where('subject', '=', subject);
    if (from !== null) query = query.where('at', '>=', from);
    if (to !== null) query = query.where('at', '<', to);
    if (after !== null) {
      query = query.where((where) => isAfterPosition(where, 'at', 'id', after));
    }
    return (await query.orderBy('at', 'desc').orderBy('id', 'desc').limit(limit).execute()).map(fromRow);
  }
}

function fromRow(row: Tables['operator_actions']): OperatorAction {
  return {
    id: row.id,
    at: row.at,
    operator: row.operator,
    action: row.action,
    subject: row.subject,
    details: row.details,
    outcome: row.outcome,
  };
}
