/**
 * `KeyBudgetRepository`: finds API keys that have spent 80 or 100 percent of their budget, for alert e-mails.
 *
 * Each percentage is mailed once per budget period. From 80 percent on, a refused request counts as 100 percent: the rest of the
 * budget was too small for the request.
 */
import { sql } from 'kysely';
import { DAY_MS } from '../../time-units.js';
import { BUDGET_PERIODS, dayOf, nextPeriodStart, PERIOD_COLUMNS, periodStart } from '../ledger/key-budget.js';
import type { BudgetPeriod, Database } from '../tables.js';
import { completeGroups } from './complete-groups.js';

export interface DueBudgetAlert {
  readonly keyId: string;
  readonly keyName: string;
  readonly keyPrefix: string;
  /** Null: the key of a personal account. */
  readonly organisationId: string | null;
  readonly email: string;
  /** Micro-USD. */
  readonly budget: number;
  /** In the current period, in micro-USD. */
  readonly spent: number;
  readonly period: BudgetPeriod;
  readonly percent: 80 | 100;
  /** Start of the next period, in milliseconds since 1970. */
  readonly resetsAt: number;
}

export class KeyBudgetRepository {
  readonly #database: Database;
  readonly #now: () => number;

  constructor({ database, now }: { readonly database: Database; readonly now: () => number }) {
    this.#database = database;
    this.#now = now;
  }

  /**
   * Due alerts, one per recipient, at most `limit` per budget period (day, week, month).
   *
   * Recipients are the person, or the owners and billing members of an organisation. Unconfirmed e-mail addresses get no mail.
   */
  async due(limit: number): Promise<DueBudgetAlert[]> {
    const alerts: DueBudgetAlert[] = [];
    for (const period of BUDGET_PERIODS) alerts.push(...(await this.#due(period, limit)));
    return alerts;
  }

  /** Records an alert as mailed, so that the alert is no longer due. */
  async mailed({ keyId, percent }: DueBudgetAlert): Promise<void> {
    await this.#database
      .updateTable('api_keys')
      .set({ budget_mailed_percent: percent, budget_mailed_at: this.#now() })
      .where('id', '=', keyId)
      .execute();
  }

  async #due(period: BudgetPeriod, limit: number): Promise<DueBudgetAlert[]> {
    const now = this.#now();
    const start = periodStart(period, dayOf(now));
    const spent = sql.ref<number>(`key_spend.${PERIOD_COLUMNS[period]}`);
    const budget = sql.ref<number>('key.budget_micro_usd');
    const isRefused = sql`exists (select 1 from failed_requests as failed where failed.account_id = key.account_id
      and failed.failed_at >= ${start * DAY_MS} and failed.failed_at >= key.budget_set_at
      and failed.api_key_id = key.id and failed.code = 'key_budget_exceeded')`;
    const percent = sql<80 | 100>`case when ${spent} >= ${budget} or ${isRefused} then 100 else 80 end`;
    const rows = await this.#database
      .selectFrom('api_keys as key')
      .innerJoin('key_spend', 'key_spend.api_key_id', 'key.id')
      .innerJoin('accounts', 'accounts.id', 'key.account_id')
      .leftJoin('organisation_members as member', (join) =>
        join.onRef('member.organisation_id', '=', 'key.account_id').on('member.role', 'in', ['owner', 'billing']),
      )
      .innerJoin('auth_users', (join) => join.on('auth_users.id', '=', sql<string>`coalesce(member.user_id, key.account_id)`))
      .select(['key.id', 'key.name', 'key.prefix', 'auth_users.email', 'member.organisation_id'])
      .select([budget.as('budget'), spent.as('spent'), percent.as('percent')])
      .where('key.budget_micro_usd', 'is not', null)
      .where('key.budget_period', '=', period)
      .where('key.revoked_at', 'is', null)
      .where((where) => where.or([where('key.expires_at', 'is', null), where('key.expires_at', '>', now)]))
      .where('accounts.deleted_at', 'is', null)
      .where('accounts.suspended_at', 'is', null)
      .where(sql<boolean>`auth_users.email_verified`)
      .where('key_spend.counted_day', '>=', start)
      .where(sql<boolean>`${spent} >= ${budget} - ${budget} / 5`)
      .where(
        sql<boolean>`(key.budget_mailed_at is null or key.budget_mailed_at < ${start * DAY_MS} or key.budget_mailed_percent < ${percent})`,
      )
      .orderBy('key.id')
      .orderBy('auth_users.id')
      .limit(limit)
      .execute();
    const resetsAt = nextPeriodStart(period, dayOf(now)) * DAY_MS;
    return completeGroups(rows, limit, (row) => row.id).map(({ id, name, prefix, email, organisation_id, ...row }) => ({
      keyId: id,
      keyName: name,
      keyPrefix: prefix,
      organisationId: organisation_id,
      email,
      budget: Number(row.budget),
      spent: Number(row.spent),
      period,
      // PostgreSQL returns computed integers as text.
      percent: Number(row.percent) === 100 ? 100 : 80,
      resetsAt,
    }));
  }
}
