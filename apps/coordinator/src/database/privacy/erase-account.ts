/**
 * `eraseAccount`: erases the personal data of a closed account, as the `erasures` of the data inventory (stored-data.ts) say.
 *
 * Ledger and usage stay under the random account id. A repeated call erases rows that were written since.
 */
import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../tables.js';
import { STORED_DATA } from './stored-data.js';
import { machinesOf } from './stored-table.js';

/** Call in the transaction that closes the account, before its providers are unlinked. `applyRetention` repeats the call later. */
export async function eraseAccount(transaction: Database, accountId: string): Promise<void> {
  await redactAuditLog(transaction, accountId);
  // In reverse order. `auth_users`, the first table, is erased last, because conditions of other tables read its e-mail address.
  for (const [name, { erasures = [] }] of [...STORED_DATA].reverse()) {
    for (const { rows, set } of erasures) {
      const table = sql.table(name);
      if (set === undefined) {
        await sql`delete from ${table} where ${rows(accountId)}`.execute(transaction);
        continue;
      }
      const assignments = Object.entries(set).map(([column, value]) => sql`${sql.ref(column)} = ${value}`);
      await sql`update ${table} set ${sql.join(assignments)} where ${rows(accountId)}`.execute(transaction);
    }
  }
}

/** Entries of the audit log per query. */
const AUDIT_PAGE_ROWS = 500;
export const ERASED_TEXT = '[erased]';
/** JSON fields that stay, because their strings are ids or codes. */
const RETAINED_FIELDS: ReadonlySet<string> = new Set(['end', 'account_id', 'provider_id']);

/** Erases free texts in audit log entries about the account, its providers and its withdrawals. Operator and action stay. */
async function redactAuditLog(transaction: Database, accountId: string): Promise<void> {
  const subjects: RawBuilder<unknown> = sql`select ${accountId} as subject
    union ${machinesOf(accountId)} union select id from withdrawals where account_id = ${accountId}`;
  for (let after = ''; ; ) {
    const { rows } = await sql<{ id: string; details: string }>`
      select id, details from operator_actions
      where subject in (${subjects}) and details is not null and id > ${after} order by id limit ${AUDIT_PAGE_ROWS}`.execute(transaction);
    for (const { id, details } of rows) {
      const redacted = redactTexts(details);
      if (redacted === details) continue;
      await transaction.updateTable('operator_actions').set({ details: redacted }).where('id', '=', id).execute();
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < AUDIT_PAGE_ROWS) return;
    after = last.id;
  }
}

/** Replaces every string of a JSON text, except in {@link RETAINED_FIELDS}. Numbers and booleans stay. */
export function redactTexts(json: string): string {
  return JSON.stringify(JSON.parse(json), (member, value: unknown) =>
    typeof value === 'string' && !RETAINED_FIELDS.has(member) ? ERASED_TEXT : value,
  );
}

/** Receipts per statement. Few, because each deletion also updates three indexes. */
const RECEIPT_BATCH_ROWS = 100;

/**
 * Removes an account's receipts in batches, because an account can have 200,000.
 *
 * @param options.maxRows Maximum receipts to remove, rounded up to whole batches. Default: no limit.
 */
export async function eraseReceipts(
  database: Database,
  accountId: string,
  { maxRows = Number.POSITIVE_INFINITY, signal }: { readonly maxRows?: number; readonly signal?: AbortSignal | undefined } = {},
): Promise<void> {
  for (let deleted = 0; deleted < maxRows; deleted += RECEIPT_BATCH_ROWS) {
    signal?.throwIfAborted();
    const batch = database.selectFrom('receipts').select('job_id').where('account_id', '=', accountId).limit(RECEIPT_BATCH_ROWS);
    const { numDeletedRows } = await database.deleteFrom('receipts').where('job_id', 'in', batch).executeTakeFirstOrThrow();
    if (numDeletedRows < RECEIPT_BATCH_ROWS) return;
    // Lets waiting work run before the next batch.
    await new Promise((resolve) => setImmediate(resolve));
  }
}
