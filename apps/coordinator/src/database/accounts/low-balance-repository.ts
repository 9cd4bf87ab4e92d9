/**
 * `LowBalanceRepository`: balance thresholds of accounts, and alert e-mails that are due because a balance is below its threshold.
 *
 * Only an armed alert is mailed. Mailing disarms the alert. `rearm` arms it when the balance has reached the threshold again.
 */
import { sql } from 'kysely';
import type { Database } from '../tables.js';
import { completeGroups } from './complete-groups.js';

/** Minimum time between two e-mails to one account. */
const MIN_INTERVAL_MS = 24 * 3_600_000;

export interface DueAlert {
  readonly accountId: string;
  /** Null: a personal account. */
  readonly organisationId: string | null;
  readonly email: string;
  /** Micro-USD. */
  readonly threshold: number;
  /** Micro-USD. */
  readonly balance: number;
}

export class LowBalanceRepository {
  readonly #database: Database;
  readonly #now: () => number;

  constructor({ database, now }: { readonly database: Database; readonly now: () => number }) {
    this.#database = database;
    this.#now = now;
  }

  /** Threshold in micro-USD; null: the account has no alert. */
  async threshold(accountId: string): Promise<number | null> {
    const row = await this.#database
      .selectFrom('low_balance_alerts')
      .select('threshold')
      .where('account_id', '=', accountId)
      .executeTakeFirst();
    return row?.threshold ?? null;
  }

  /** Sets the threshold in micro-USD and arms the alert; null removes the alert. */
  async setThreshold(accountId: string, threshold: number | null): Promise<void> {
    if (threshold === null) {
      await this.#database.deleteFrom('low_balance_alerts').where('account_id', '=', accountId).execute();
      return;
    }
    await this.#database
      .insertInto('low_balance_alerts')
      .values({ account_id: accountId, threshold, is_armed: 1, mailed_at: null })
      .onConflict((conflict) => conflict.column('account_id').doUpdateSet({ threshold, is_armed: 1 }))
      .execute();
  }

  /** Arms the alerts of accounts whose balance has reached the threshold again. */
  async rearm(): Promise<void> {
    await this.#database
      .updateTable('low_balance_alerts')
      .set({ is_armed: 1 })
      .where('is_armed', '=', 0)
      .where(({ exists, selectFrom }) =>
        exists(
          selectFrom('balances')
            .select('account')
            .whereRef('account', '=', 'low_balance_alerts.account_id')
            .whereRef('balance', '>=', 'low_balance_alerts.threshold'),
        ),
      )
      .execute();
  }

  /**
   * Due alerts, one per recipient, ordered by account id.
   *
   * Recipients are the person, or the owners and billing members of an organisation. Unconfirmed e-mail addresses get no mail.
   */
  async due(limit: number): Promise<DueAlert[]> {
    const balance = sql<number>`coalesce(balances.balance, 0)`;
    const rows = await this.#database
      .selectFrom('low_balance_alerts as alert')
      .innerJoin('accounts', 'accounts.id', 'alert.account_id')
      .leftJoin('organisation_members as member', (join) =>
        join.onRef('member.organisation_id', '=', 'alert.account_id').on('member.role', 'in', ['owner', 'billing']),
      )
      .innerJoin('auth_users', (join) => join.on('auth_users.id', '=', sql<string>`coalesce(member.user_id, alert.account_id)`))
      .leftJoin('balances', 'balances.account', 'alert.account_id')
      .select(['alert.account_id', 'alert.threshold', 'auth_users.email', 'member.organisation_id', balance.as('balance')])
      .where('alert.is_armed', '=', 1)
      .where('accounts.deleted_at', 'is', null)
      .where('accounts.suspended_at', 'is', null)
      .where(sql<boolean>`auth_users.email_verified`)
      .where(({ or, eb }) => or([eb('alert.mailed_at', 'is', null), eb('alert.mailed_at', '<=', this.#now() - MIN_INTERVAL_MS)]))
      .where(balance, '<', sql.ref<number>('alert.threshold'))
      .orderBy('alert.account_id')
      .orderBy('auth_users.id')
      .limit(limit)
      .execute();
    return completeGroups(rows, limit, (row) => row.account_id).map(
      ({ account_id, organisation_id, email, threshold, balance: micro }) => ({
        accountId: account_id,
        organisationId: organisation_id,
        email,
        threshold,
        balance: Number(micro),
      }),
    );
  }

  /** Disarms an alert that was mailed. */
  async mailed(accountId: string): Promise<void> {
    await this.#database
      .updateTable('low_balance_alerts')
      .set({ is_armed: 0, mailed_at: this.#now() })
      .where('account_id', '=', accountId)
      .execute();
  }
}
