/** `OwnerCommandRepository`: log of the commands that owners send to their providers from the console, such as "pause". */
import { randomUUID } from 'node:crypto';
import { lazyValidator, type OwnerAction, OwnerActionSchema } from '@inference/protocol';
import { isAfterPosition, removeOldestRows } from '../row-position.js';
import type { CommandOutcome, CommandRefusal } from '../tables/providers.js';
import type { Database } from '../tables.js';

/** Maximum stored commands per account. A new one removes the oldest. */
export const MAX_COMMANDS = 1000;

const isAction = lazyValidator(OwnerActionSchema);

export interface StoredCommand {
  readonly id: string;
  readonly at: number;
  /** Null: the account was deleted. */
  readonly actor: { readonly id: string; readonly name: string; readonly email: string } | null;
  /** Null: another version of this program has stored an action that this version does not know. */
  readonly action: OwnerAction | null;
  /** Null: no outcome yet, or the coordinator stopped before the provider answered. */
  readonly outcome: CommandOutcome | null;
  readonly refusal: CommandRefusal | null;
}

export class OwnerCommandRepository {
  readonly #database: Database;
  readonly #now: () => number;

  constructor(options: { readonly database: Database; readonly now: () => number }) {
    this.#database = options.database;
    this.#now = options.now;
  }

  /** Adds a command that is about to be sent, without an outcome. Returns its id. */
  async add(command: { accountId: string; providerId: string; actorId: string; action: OwnerAction }): Promise<string> {
    const { accountId: account_id, providerId: provider_id, actorId: actor_id, action } = command;
    const id = randomUUID();
    await this.#database
      .insertInto('owner_commands')
      .values({ id, account_id, provider_id, actor_id, at: this.#now(), action: JSON.stringify(action), outcome: null, refusal: null })
      .execute();
    await removeOldestRows(this.#database, { table: 'owner_commands', ownerColumn: 'account_id', maxRows: MAX_COMMANDS }, account_id);
    return id;
  }

  async setOutcome(id: string, outcome: CommandOutcome, refusal: CommandRefusal | null): Promise<void> {
    await this.#database.updateTable('owner_commands').set({ outcome, refusal }).where('id', '=', id).execute();
  }

  /** At most `limit` commands of an account to a provider after the position `after`, newest first. */
  async list(
    accountId: string,
    providerId: string,
    limit: number,
    after: { readonly at: number; readonly id: string } | null,
  ): Promise<StoredCommand[]> {
    let query = this.#database
      .selectFrom('owner_commands as command')
      .leftJoin('auth_users', 'auth_users.id', 'command.actor_id')
      .select(['command.id', 'command.at', 'command.action', 'command.outcome', 'command.refusal'])
      .select(['auth_users.id as user_id', 'auth_users.name', 'auth_users.email'])
      .where('command.account_id', '=', accountId)
      .where('command.provider_id', '=', providerId);
    if (after !== null) {
      query = query.where((where) => isAfterPosition(where, 'command.at', 'command.id', after));
    }
    const rows = await query.orderBy('command.at', 'desc').orderBy('command.id', 'desc').limit(limit).execute();
    return rows.map(({ user_id, name, email, action, ...command }) => ({
      ...command,
      actor: user_id === null ? null : { id: user_id, name: name ?? '', email: email ?? '' },
      action: parseAction(action),
    }));
  }
}

function parseAction(text: string): OwnerAction | null {
  const value: unknown = JSON.parse(text);
  return isAction().Check(value) ? value : null;
}
