/** Retention removes rows older than the maximum age. Younger rows, and rows without a maximum, stay. */
import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { readRetention } from '../../../src/config/retention.js';
import { dialectOf } from '../../../src/database/connection/dialect.js';
import { applyRetention, type RetentionSettings } from '../../../src/database/privacy/retention.js';
import type { Database } from '../../../src/database/tables.js';
import { describeDatabases } from '../../support/databases.js';

const DAY_MS = 86_400_000;
const NOW = 2_000 * DAY_MS;
const NO_MAXIMUM: RetentionSettings = {
  sessionAddressDays: null,
  failedRequestDays: null,
  receiptDays: null,
  organisationLogDays: null,
  auditLogDays: null,
  machineDays: null,
  unlinkedMachineDays: null,
  closedAccountDays: null,
};

describeDatabases('retention', (fresh) => {
  it('removes only rows older than their setting, in slices', async () => {
    const place = await fresh();
    const database = await place.open();
    await plant(database);
    const count = async (table: string, condition = sql`true`): Promise<number> => {
      const { rows } = await sql<{ count: number }>`select count(*) as count from ${sql.table(table)} where ${condition}`.execute(database);
      return Number(rows[0]?.count);
    };

    // Without maximum ages, only expired rows that nobody can use any more are removed.
    expect(await applyRetention(database, NO_MAXIMUM, NOW)).toEqual({
      'device codes': 1,
      'expired invitations': 1,
      'unused enrolments': 1,
      'device nonces': 1,
    });
    expect(await applyRetention(database, NO_MAXIMUM, NOW)).toEqual({});

    expect(await applyRetention(database, { ...NO_MAXIMUM, auditLogDays: 10, organisationLogDays: 10 }, NOW)).toEqual({
      'audit log': 1100,
      'organisation logs': 1,
    });
    expect([await count('operator_actions'), await count('organisation_events')]).toEqual([1, 1]);

    const rows = { ...NO_MAXIMUM, sessionAddressDays: 10, failedRequestDays: 10, receiptDays: 10 };
    expect(await applyRetention(database, rows, NOW)).toEqual({ 'failed requests': 1, receipts: 1, 'session addresses': 1 });
    expect([await count('failed_requests'), await count('receipts'), await count('auth_sessions')]).toEqual([1, 1, 2]);
    expect(await count('auth_sessions', sql`ip_address is null and user_agent is null`)).toBe(1);

    // `linked` and `free` last reported twenty days ago, `busy` now.
    const free = { ...NO_MAXIMUM, unlinkedMachineDays: 15 };
    expect(await applyRetention(database, free, NOW)).toMatchObject({ 'device enrolments': 1, 'device evidence': 1, 'device commands': 1 });
    const left = await database.selectFrom('device_enrolments').select('id').orderBy('id').execute();
    expect(left.map(({ id }) => id)).toEqual(['busy', 'linked', 'offered']);
    expect(await applyRetention(database, { ...NO_MAXIMUM, machineDays: 15 }, NOW)).toMatchObject({
      'device enrolments': 1,
      'machine states': 1,
    });
    expect([await count('device_evidence'), await count('device_commands'), await count('machines_last_seen')]).toEqual([1, 1, 1]);

    const closed = await applyRetention(database, { ...NO_MAXIMUM, closedAccountDays: 10 }, NOW);
    expect(closed).toEqual({ 'payment ids of closed accounts': 1, 'transfer ids of closed accounts': 1, 'keys of closed accounts': 1 });
    const orders = await database.selectFrom('deposit_orders').select(['id', 'payment_id']).orderBy('id').execute();
    expect(orders).toEqual([
      { id: 'closed', payment_id: null },
      { id: 'open', payment_id: 'payment of open' },
    ]);
    expect(await count('api_keys')).toBe(1);
    // An open withdrawal needs the payout account.
    await database.insertInto('payout_accounts').values({ account_id: 'closed', payout_id: 'acct_1', created_at: 0 }).execute();
    for (const [state, left] of [
      ['requested', 1],
      ['paid', 0],
    ] as const) {
      await database.updateTable('withdrawals').set({ state }).where('id', '=', 'closed').execute();
      await applyRetention(database, NO_MAXIMUM, NOW);
      expect([state, await count('payout_accounts')]).toEqual([state, left]);
    }
    // A rule that fails stops neither later rules nor erasures.
    await database.insertInto('payout_accounts').values({ account_id: 'closed', payout_id: 'acct_2', created_at: 0 }).execute();
    await sql`alter table organisation_events rename column at to hidden`.execute(database);
    await expect(applyRetention(database, { ...NO_MAXIMUM, organisationLogDays: 1, failedRequestDays: 1 }, NOW)).rejects.toThrow(/column/);
    expect([await count('payout_accounts'), await count('failed_requests')]).toEqual([0, 0]);
    await sql`alter table organisation_events rename column hidden to at`.execute(database);
    const ending = new AbortController();
    ending.abort(new Error('shutdown'));
    await expect(applyRetention(database, NO_MAXIMUM, NOW, ending.signal)).rejects.toThrow('shutdown');
    await database.destroy();
    await place.remove();
  });
});

it('refuses settings that are no days, by name; 0 sets no maximum', () => {
  expect(readRetention({})).toEqual({
    ...NO_MAXIMUM,
    sessionAddressDays: 90,
    machineDays: 730,
    unlinkedMachineDays: 30,
    closedAccountDays: 3650,
  });
  expect(readRetention({ RETENTION_MACHINES_DAYS: '0', RETENTION_AUDIT_LOG_DAYS: '365' })).toMatchObject({
    machineDays: null,
    auditLogDays: 365,
  });
  for (const bad of ['-1', '1.5', 'ten', '36501'])
    expect(() => readRetention({ RETENTION_AUDIT_LOG_DAYS: bad })).toThrow('RETENTION_AUDIT_LOG_DAYS');
});

const OLD = NOW - 100 * DAY_MS;
const YOUNG = NOW - 5 * DAY_MS;

async function plant(database: Database): Promise<void> {
  const account = (id: string, deleted_at: number | null) => ({
    id,
    name: id,
    created_at: 0,
    admin_since: null,
    suspended_at: null,
    deleted_at,
  });
  await database
    .insertInto('accounts')
    .values([account('open', null), account('closed', OLD)])
    .execute();
  await database.insertInto('organisations').values({ account_id: 'open', created_by: 'somebody', created_at: 0 }).execute();
  for (const [name, at] of [
    ['old', OLD],
    ['young', YOUNG],
  ] as const) {
    await sql`insert into organisation_events (id, organisation_id, at, actor_id, action) values (${name}, 'open', ${at}, 'x', 'member.left')`.execute(
      database,
    );
    await sql`insert into failed_requests values (${name}, 'open', 'key', null, '/', null, 0, 'internal', 1, ${at})`.execute(database);
    await sql`insert into receipts values (${name}, 'open', 'x', 'x', 'x', ${at})`.execute(database);
    await sql`insert into auth_users (id, name, email, email_verified, created_at, updated_at)
      values (${name}, 'x', ${name}, ${dialectOf(database) === 'postgres' ? true : 1}, ${date(at)}, ${date(at)})`.execute(database);
    await sql`insert into auth_sessions (id, expires_at, token, created_at, updated_at, ip_address, user_agent, user_id)
      values (${name}, ${date(NOW)}, ${name}, ${date(at)}, ${date(at)}, '192.0.2.1', 'a browser', ${name})`.execute(database);
    await sql`insert into organisation_invitations values (${name}, 'open', ${name}, 'viewer', ${name}, 'x', ${at}, 1, ${at})`.execute(
      database,
    );
    await sql`insert into device_nonces values ('enclave', ${at}, 'x', ${at})`.execute(database);
    await sql`insert into device_codes (hash, user_code, machine_name, requested_at, expires_at, interval_ms)
      values (${name}, ${name}, 'x', ${at}, ${name === 'old' ? at : NOW}, 1)`.execute(database);
  }
  const action = (id: string, at: number) => ({ id, at, operator: 'key:x', action: 'x', subject: null, details: null, outcome: 'done' });
  const actions = Array.from({ length: 1100 }, (_, index) => action(`action-${index}`, OLD));
  for (let start = 0; start < actions.length; start += 275) {
    await database
      .insertInto('operator_actions')
      .values(actions.slice(start, start + 275))
      .execute();
  }
  await database.insertInto('operator_actions').values(action('young', YOUNG)).execute();
  for (const id of ['open', 'closed']) {
    await sql`insert into deposit_orders (id, account_id, amount_micro_usd, source, state, checkout_id, payment_id, created_at)
      values (${id}, ${id}, 1, 'stripe', 'paid', ${`checkout of ${id}`}, ${`payment of ${id}`}, 0)`.execute(database);
    await sql`insert into withdrawals values (${id}, ${id}, 1, 'paid', 0, 1)`.execute(database);
    await sql`insert into withdrawal_ends values (${id}, 'transfer', ${`transfer of ${id}`}, 0)`.execute(database);
    await sql`insert into api_keys (id, account_id, kind, hash, prefix, name, created_at) values (${id}, ${id}, 'api', ${id}, 'x', 'x', 0)`.execute(
      database,
    );
  }
  for (const [id, owner, seen] of [
    ['linked', 'open', NOW - 20 * DAY_MS],
    ['busy', 'open', NOW],
    ['free', null, NOW - 20 * DAY_MS],
  ] as const) {
    await enrolment(database, id, 'active', `device of ${id}`);
    await sql`insert into device_evidence values (${`key of ${id}`}, 'security_info', ${id}, '{}', ${seen})`.execute(database);
    await sql`insert into device_commands values (${id}, ${id}, 'security_info', 0, 0, ${seen}, 'taken')`.execute(database);
    if (owner === null) continue;
    await database.insertInto('provider_owners').values({ provider_id: id, account_id: owner, first_owner: owner, linked_at: 0 }).execute();
    await database.insertInto('machines_last_seen').values({ provider_id: id, seen_at: seen, facts: '{}' }).execute();
  }
  await enrolment(database, 'expired', 'offered', null);
  await enrolment(database, 'offered', 'offered', null, NOW);
}

async function enrolment(database: Database, id: string, state: 'offered' | 'active', device_id: string | null, at = OLD): Promise<void> {
  await database
    .insertInto('device_enrolments')
    .values({
      ...{ id, provider_id: id, se_key_sha256: `key of ${id}`, se_public_key: 'x', serial_number: id, download_hash: null, token_hash: id },
      ...{ state, device_id, created_at: at, expires_at: at, bound_at: null, ended_at: null, end_reason: null },
    })
    .execute();
}

function date(ms: number): string {
  return new Date(ms).toISOString();
}
