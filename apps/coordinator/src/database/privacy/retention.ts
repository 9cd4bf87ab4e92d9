/**
 * `applyRetention`: removes rows that are older than their retention time. wiring/retention.ts calls it hourly.
 *
 * Each batch is a transaction of its own, so a run may be interrupted and repeated.
 */
import { type RawBuilder, sql } from 'kysely';
import { DAY_MS } from '../../time-units.js';
import { lockKeysOf } from '../accounts/api-key-repository.js';
import { dialectOf } from '../connection/dialect.js';
import type { Database } from '../tables.js';
import { eraseAccount, eraseReceipts } from './erase-account.js';

/** Maximum ages in days, from the settings `RETENTION_…_DAYS`. Null: no maximum. */
export interface RetentionSettings {
  readonly auditLogDays: number | null;
  readonly organisationLogDays: number | null;
  readonly sessionAddressDays: number | null;
  readonly failedRequestDays: number | null;
  readonly receiptDays: number | null;
  /** State and device evidence of providers that are linked to an account. The age starts at the last report. */
  readonly machineDays: number | null;
  readonly unlinkedMachineDays: number | null;
  readonly closedAccountDays: number | null;
}

/** Keys per statement. Few, so that other work never waits long. */
const BATCH_ROWS = 500;
/** Maximum rows per rule and run. The next run continues. */
const MAX_ROWS = 200_000;
const EXPIRED_INVITATION_DAYS = 30;
const EXPIRED_DEVICE_CODE_MS = 20 * 60_000;
/** Attestation certificates may contain nonces of the last six weeks. Four more weeks are a margin. */
const NONCE_DAYS = 70;
/**
 * Days after a closure during which the account is erased again, because queued rows may be written later.
 *
 * Receipts of images may be written up to a week later.
 */
const REPEAT_ERASURE_DAYS = 9;
/** Maximum closed accounts per run that are erased again, the newest first. */
const MAX_CLOSED_ACCOUNTS = 1000;

/** SQL statement that changes the rows of at most {@link BATCH_ROWS} keys. A key may have several rows. */
type Statement = RawBuilder<unknown>;

interface Rule {
  /** Name in the log. */
  readonly name: string;
  /** Executed again until it changes fewer than {@link BATCH_ROWS} rows. */
  readonly statement: Statement;
}

/**
 * Repeats the erasure of recently closed accounts, then applies all rules.
 *
 * @returns Counts of changed rows by name of the rule. Rules without changes are omitted.
 * @throws The first error of a rule, after all rules have run. If `signal` is aborted, its reason at once.
 */
export async function applyRetention(
  database: Database,
  settings: RetentionSettings,
  now: number,
  signal?: AbortSignal,
): Promise<Readonly<Record<string, number>>> {
  const changed: Record<string, number> = {};
  const errors: unknown[] = [];
  const attempt = async (work: () => Promise<void>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      signal?.throwIfAborted();
      errors.push(error);
    }
  };
  const erasedCount = await repeatErasures(database, now, { attempt, signal });
  for (const rule of rulesOf(settings, now)) {
    const onChange = (rowCount: number): void => {
      changed[rule.name] = (changed[rule.name] ?? 0) + rowCount;
    };
    await attempt(() => applyRule(database, rule, { signal, onChange }));
  }
  if (erasedCount > 0 || Object.keys(changed).length > 0) await attempt(() => truncateWriteAheadLog(database));
  if (errors.length > 0) throw errors[0];
  return changed;
}

/** Applies a rule in batches. `onChange` gets the number of rows that each batch changed. */
async function applyRule(
  database: Database,
  { statement }: Rule,
  { signal, onChange }: { readonly signal: AbortSignal | undefined; readonly onChange: (rowCount: number) => void },
): Promise<void> {
  for (let total = 0, count = BATCH_ROWS; count >= BATCH_ROWS && total < MAX_ROWS; total += count) {
    signal?.throwIfAborted();
    count = Number((await statement.execute(database)).numAffectedRows ?? 0n);
    if (count > 0) onChange(count);
    // Lets waiting work run before the next batch.
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Removes deleted data from SQLite's write-ahead log. If a reader prevents the truncation, a later run retries. */
async function truncateWriteAheadLog(database: Database): Promise<void> {
  if (dialectOf(database) === 'sqlite') await sql`pragma wal_checkpoint(truncate)`.execute(database);
}

function rulesOf(settings: RetentionSettings, now: number): Rule[] {
  const rules: Rule[] = [
    rule('device codes', removal('device_codes', 'hash', sql`expires_at < ${now - EXPIRED_DEVICE_CODE_MS}`)),
    rule('expired invitations', removal('organisation_invitations', 'id', sql`expires_at < ${now - EXPIRED_INVITATION_DAYS * DAY_MS}`)),
    rule(
      'unused enrolments',
      removal('device_enrolments', 'id', sql`state = 'offered' and device_id is null and expires_at < ${now - DAY_MS}`),
    ),
    rule('device nonces', nonceRemoval(now - NONCE_DAYS * DAY_MS)),
  ];
  /** Adds rules for rows from before a time, unless their age is unlimited. */
  const add = (maxDays: number | null, rulesFor: (before: number) => readonly Rule[]): void => {
    if (maxDays !== null) rules.push(...rulesFor(now - maxDays * DAY_MS));
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
    and se_key_sha256 in (select se_key_sha256 from device_nonces where created_at < ${before} limit ${BATCH_ROWS})`;
}

/** Clears address and browser of old sessions. better-auth stores times as ISO text (SQLite) or timestamps (PostgreSQL). */
function sessionAddresses(before: number): Statement {
  const time = new Date(before).toISOString();
  return sql`update auth_sessions set ip_address = null, user_agent = null where id in (
    select id from auth_sessions where created_at < ${time} and (ip_address is not null or user_agent is not null) limit ${BATCH_ROWS})`;
}

/** Rules for providers without a recent report. `owner`: SQL condition on the account id, which is `provider:…` for unlinked ones. */
function machineRules(owner: RawBuilder<unknown>): (before: number) => readonly Rule[] {
  return (before) => {
    const account = sql`coalesce((select account_id from provider_owners where provider_owners.provider_id = machine.provider_id), 'provider:')`;
    const enrolments = sql`select id from device_enrolments as machine where created_at < ${before} and ${account} ${owner}
      and not exists (select 1 from device_evidence as evidence
        where evidence.se_key_sha256 = machine.se_key_sha256 and evidence.enrolment_id = machine.id and evidence.received_at >= ${before})
      and not exists (select 1 from device_commands where enrolment_id = machine.id and outcome = 'taken' and ended_at >= ${before})
      order by id limit ${BATCH_ROWS}`;
    const removalOf = (table: string): Statement => sql`delete from ${sql.table(table)} where enrolment_id in (${enrolments})`;
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
      rule('device commands', removalOf('device_commands')),
      rule('device evidence', removalOf('device_evidence')),
      rule(
        'device enrolments',
        sql`delete from device_enrolments where id in (${enrolments})
        and not exists (select 1 from device_commands where enrolment_id = device_enrolments.id)
        and not exists (select 1 from device_evidence where enrolment_id = device_enrolments.id)`,
      ),
    ];
  };
}

/** Clears ids that link closed accounts to data at the payment processor, and deletes their API keys. */
function closedAccountRules(before: number): readonly Rule[] {
  const closed = sql`select id from accounts where deleted_at < ${before}`;
  return [
    rule(
      'payment ids of closed accounts',
      sql`update deposit_orders set checkout_id = null, payment_id = null where id in (
      select id from deposit_orders where account_id in (${closed}) and (checkout_id is not null or payment_id is not null) limit ${BATCH_ROWS})`,
    ),
    rule(
      'transfer ids of closed accounts',
      sql`update withdrawal_ends set transfer_id = null where withdrawal_id in (
      select withdrawal_id from withdrawal_ends join withdrawals on withdrawals.id = withdrawal_id
      where transfer_id is not null and account_id in (${closed}) limit ${BATCH_ROWS})`,
    ),
    rule('keys of closed accounts', removal('api_keys', 'id', sql`account_id in (${closed})`)),
  ];
}

interface ErasureRun {
  /** Runs `work` and records its error instead of throwing, so that other accounts are erased too. */
  readonly attempt: (work: () => Promise<void>) => Promise<void>;
  readonly signal: AbortSignal | undefined;
}

/** Erases recently closed accounts again, because rows may have been written after their closure. Resolves to the number of accounts. */
async function repeatErasures(database: Database, now: number, { attempt, signal }: ErasureRun): Promise<number> {
  let ids: readonly string[] = [];
  await attempt(async () => {
    ids = await findRecentlyClosed(database, now);
  });
  for (const id of ids) {
    signal?.throwIfAborted();
    await attempt(async () => {
      await database.transaction().execute(async (transaction) => {
        await lockKeysOf(transaction, id);
        await eraseAccount(transaction, id);
      });
      await eraseReceipts(database, id, { signal });
    });
  }
  return ids.length;
}

async function findRecentlyClosed(database: Database, now: number): Promise<string[]> {
  const closed = await database
    .selectFrom('accounts')
    .select('id')
    .where((where) =>
      where.or([
        where('deleted_at', '>=', now - REPEAT_ERASURE_DAYS * DAY_MS),
        // The payout account was not removed at the closure, because a withdrawal was open.
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

/** Statement that deletes one batch of the rows that meet a condition. `key`: a unique column. */
function removal(table: string, key: string, condition: RawBuilder<unknown>): Statement {
  const [name, column] = [sql.table(table), sql.ref(key)];
  return sql`delete from ${name} where ${column} in (select ${column} from ${name} where ${condition} limit ${BATCH_ROWS})`;
}
