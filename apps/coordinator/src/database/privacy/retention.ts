/** `applyRetention` removes rows older than the settings allow, in small statements. Safe to repeat and to interrupt. */
import { type RawBuilder, sql } from 'kysely';
import { dialectOf } from '../connection/dialect.js';
import type { Database } from '../tables.js';
import { eraseAccount, eraseReceipts } from './erase-account.js';

/** Days; null: no maximum. */
export interface RetentionSettings {
  readonly auditLogDays: number | null;
  readonly organisationLogDays: number | null;
  readonly sessionAddressDays: number | null;
  readonly failedRequestDays: number | null;
  readonly receiptDays: number | null;
  /** Of machines linked to an account. */
  readonly machineDays: number | null;
  readonly unlinkedMachineDays: number | null;
  readonly closedAccountDays: number | null;
}

const DAY_MS = 86_400_000;
/** Rows per statement, so that other work never waits long. */
const SLICE = 500;
/** Rows per rule and run; the next run continues. */
const MAX_ROWS = 200_000;
const EXPIRED_INVITATION_DAYS = 30;
const DEVICE_CODE_MS = 20 * 60_000;
/** Certificates may use nonces of the last six weeks; four more weeks are margin. */
const NONCE_DAYS = 70;
/** Closed accounts are erased again for this long: rows may have been queued, receipts of images for up to a week. */
const REPEAT_ERASURE_DAYS = 9;
const MAX_CLOSED_ACCOUNTS = 1000;

/** Changes the rows of at most {@link SLICE} keys; a key may have several rows. */
type Statement = RawBuilder<unknown>;

interface Rule {
  readonly name: string;
  readonly statement: Statement;
}

/**
 * Repeats erasures, then runs all rules. Resolves to the changed rows per rule that changed any.
 *
 * @throws The first error, after everything else has run. Aborted: at once.
 */
export async function applyRetention(
  database: Database,
  settings: RetentionSettings,
  now: number,
  signal?: AbortSignal,
): Promise<Readonly<Record<string, number>>> {
  const changed: Record<string, number> = {};
  let first: { readonly error: unknown } | undefined;
  const attempt = async (work: () => Promise<void>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      signal?.throwIfAborted();
      first ??= { error };
    }
  };
  const accounts = await repeatErasures(database, now, { attempt, signal });
  for (const one of rulesOf(settings, now)) {
    await attempt(async () => {
      await apply(database, one, { signal, onChange: (rows) => (changed[one.name] = (changed[one.name] ?? 0) + rows) });
    });
  }
  if (accounts > 0 || Object.keys(changed).length > 0) await attempt(() => truncateWriteAheadLog(database));
  if (first !== undefined) throw (first as { readonly error: unknown }).error;
  return changed;
}

/** Applies a rule slice by slice. `onChange` gets the rows that a statement changed. */
async function apply(
  database: Database,
  { statement }: Rule,
  { signal, onChange }: { readonly signal: AbortSignal | undefined; readonly onChange: (rows: number) => void },
): Promise<void> {
  for (let all = 0, count = SLICE; count >= SLICE && all < MAX_ROWS; all += count) {
    signal?.throwIfAborted();
    count = Number((await statement.execute(database)).numAffectedRows ?? 0n);
    if (count > 0) onChange(count);
    // Lets other work use the database and the thread first.
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
}

/** SQLite's write-ahead log still contains erased data. Other readers may block its truncation; a later run retries. */
async function truncateWriteAheadLog(database: Database): Promise<void> {
  if (dialectOf(database) === 'sqlite') await sql`pragma wal_checkpoint(truncate)`.execute(database);
}

function rulesOf(settings: RetentionSettings, now: number): Rule[] {
  const rules: Rule[] = [
    rule('device codes', removal('device_codes', 'hash', sql`expires_at < ${now - DEVICE_CODE_MS}`)),
    rule('expired invitations', removal('organisation_invitations', 'id', sql`expires_at < ${now - EXPIRED_INVITATION_DAYS * DAY_MS}`)),
    rule(
      'unused enrolments',
      removal('device_enrolments', 'id', sql`state = 'offered' and device_id is null and expires_at < ${now - DAY_MS}`),
    ),
    rule('device nonces', nonceRemoval(now - NONCE_DAYS * DAY_MS)),
  ];
  const add = (days: number | null, build: (before: number) => readonly Rule[]): void => {
    if (days !== null) rules.push(...build(now - days * DAY_MS));
  };
  add(settings.auditLogDays, (before) => [rule('audit log', removal('operator_actions', 'id', sql`at < ${before}`))]);
  add(settings.organisationLogDays, (before) => [rule('organisation logs', removal('organisation_events', 'id', sql`at < ${before}`))]);
  add(settings.failedRequestDays, (before) => [rule('failed requests', removal('failed_requests', 'job_id', sql`failed_at < ${before}`))]);
  add(settings.receiptDays, (before) => [rule('receipts', removal('receipts', 'job_id', sql`created_at < ${before}`))]);
  add(settings.sessionAddressDays, (before) => [rule('session addresses', sessionAddresses(before))]);
  add(settings.machineDays, machineRules(sql`not like 'provider:%'`));
  add(settings.unlinkedMachineDays, machineRules(sql`like 'provider:%'`));
  add(settings.closedAccountDays, closedAccountRules);
  return rules;
}

function rule(name: string, statement: Statement): Rule {
  return { name, statement };
}

function nonceRemoval(before: number): Statement {
  return sql`delete from device_nonces where created_at < ${before}
    and se_key_sha256 in (select se_key_sha256 from device_nonces where created_at < ${before} limit ${SLICE})`;
}

/** The sign-in library stores dates: text on SQLite, timestamps on PostgreSQL. */
function sessionAddresses(before: number): Statement {
  const time = new Date(before).toISOString();
  return sql`update auth_sessions set ip_address = null, user_agent = null where id in (
    select id from auth_sessions where created_at < ${time} and (ip_address is not null or user_agent is not null) limit ${SLICE})`;
}

/** Rules for machines unseen for long. `owner`: SQL condition on the account id, which begins with `provider:` if unlinked. */
function machineRules(owner: RawBuilder<unknown>): (before: number) => readonly Rule[] {
  return (before) => {
    const account = sql`coalesce((select account_id from provider_owners where provider_owners.provider_id = machine.provider_id), 'provider:')`;
    const enrolments = sql`select id from device_enrolments as machine where created_at < ${before} and ${account} ${owner}
      and not exists (select 1 from device_evidence as evidence
        where evidence.se_key_sha256 = machine.se_key_sha256 and evidence.enrolment_id = machine.id and evidence.received_at >= ${before})
      and not exists (select 1 from device_commands where enrolment_id = machine.id and outcome = 'taken' and ended_at >= ${before})
      order by id limit ${SLICE}`;
    const of = (table: string): Statement => sql`delete from ${sql.table(table)} where enrolment_id in (${enrolments})`;
    return [
      rule(
        'machine states',
        removal(
          'machines_last_seen',
          'provider_id',
          sql`provider_id in (
        select provider_id from machines_last_seen as machine where seen_at < ${before} and ${account} ${owner})`,
        ),
      ),
      rule('device commands', of('device_commands')),
      rule('device evidence', of('device_evidence')),
      rule(
        'device enrolments',
        sql`delete from device_enrolments where id in (${enrolments})
        and not exists (select 1 from device_commands where enrolment_id = device_enrolments.id)
        and not exists (select 1 from device_evidence where enrolment_id = device_enrolments.id)`,
      ),
    ];
  };
}

/** Clears ids that link closed accounts to customers of the payment processor, and deletes their revoked keys. */
function closedAccountRules(before: number): readonly Rule[] {
  const closed = sql`select id from accounts where deleted_at < ${before}`;
  return [
    rule(
      'payment ids of closed accounts',
      sql`update deposit_orders set checkout_id = null, payment_id = null where id in (
      select id from deposit_orders where account_id in (${closed}) and (checkout_id is not null or payment_id is not null) limit ${SLICE})`,
    ),
    rule(
      'transfer ids of closed accounts',
      sql`update withdrawal_ends set transfer_id = null where withdrawal_id in (
      select withdrawal_id from withdrawal_ends join withdrawals on withdrawals.id = withdrawal_id
      where transfer_id is not null and account_id in (${closed}) limit ${SLICE})`,
    ),
    rule('keys of closed accounts', removal('api_keys', 'id', sql`account_id in (${closed})`)),
  ];
}

interface Attempts {
  /** Retains an error, so that the rest runs. */
  readonly attempt: (work: () => Promise<void>) => Promise<void>;
  readonly signal: AbortSignal | undefined;
}

/** Erases recently closed accounts again, with rows that were queued or came later. Resolves to the number of accounts. */
async function repeatErasures(database: Database, now: number, { attempt, signal }: Attempts): Promise<number> {
  let ids: readonly string[] = [];
  await attempt(async () => {
    ids = await recentlyClosed(database, now);
  });
  for (const id of ids) {
    signal?.throwIfAborted();
    await attempt(async () => {
      await database.transaction().execute((transaction) => eraseAccount(transaction, id));
      await eraseReceipts(database, id, { signal });
    });
  }
  return ids.length;
}

async function recentlyClosed(database: Database, now: number): Promise<string[]> {
  const closed = await database
    .selectFrom('accounts')
    .select('id')
    .where((where) =>
      where.or([
        where('deleted_at', '>=', now - REPEAT_ERASURE_DAYS * DAY_MS),
        // An open withdrawal kept the payout account: erase again until it is gone.
        where.and([
          where('deleted_at', 'is not', null),
          where('id', 'in', (select) => select.selectFrom('payout_accounts').select('account_id')),
        ]),
      ]),
    )
    .orderBy('deleted_at', 'desc')
    .limit(MAX_CLOSED_ACCOUNTS)
    .execute();
  return closed.map(({ id }) => id);
}

/** Deletes one slice of the rows that meet the condition. */
function removal(table: string, key: string, rows: RawBuilder<unknown>): Statement {
  const [name, column] = [sql.table(table), sql.ref(key)];
  return sql`delete from ${name} where ${column} in (select ${column} from ${name} where ${rows} limit ${SLICE})`;
}
