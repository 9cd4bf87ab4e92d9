/**
 * `eraseAccount` removes the identities of a closed account, as the inventory says. Ledger and usage stay under the random id.
 *
 * Safe to repeat: rows that were queued while the account was closed are erased by a later run.
 */
import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../tables.js';
import { STORED_DATA } from './stored-data.js';
import { machinesOf } from './stored-table.js';

/** Runs in the transaction that closes the account, before its machines are unlinked. Retention repeats it later. */
export async function eraseAccount(transaction: Database, accountId: string): Promise<void> {
  await redactActions(transaction, accountId);
  // In reverse: conditions read the e-mail address in `auth_users`, the first table, so it is erased last.
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

const SLICE = 500;
export const ERASED_TEXT = '[erased]';
/** JSON fields whose strings are ids or codes, not free text. */
const KEPT_FIELDS: ReadonlySet<string> = new Set(['end', 'account_id', 'provider_id']);

/** Erases free texts in the operators' log about the account, its machines and its withdrawals. Who did what stays. */
async function redactActions(transaction: Database, accountId: string): Promise<void> {
  const subjects: RawBuilder<unknown> = sql`select ${accountId} as subject
    union ${machinesOf(accountId)} union select id from withdrawals where account_id = ${accountId}`;
  for (let after = ''; ; ) {
    const { rows } = await sql<{ id: string; details: string }>`
      select id, details from operator_actions
      where subject in (${subjects}) and details is not null and id > ${after} order by id limit ${SLICE}`.execute(transaction);
    for (const { id, details } of rows) {
      const redacted = redactTexts(details);
      if (redacted === details) continue;
      await transaction.updateTable('operator_actions').set({ details: redacted }).where('id', '=', id).execute();
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < SLICE) return;
    after = last.id;
  }
}

/** JSON with every string replaced, except in {@link KEPT_FIELDS}. Numbers and flags stay. */
export function redactTexts(json: string): string {
  return JSON.stringify(JSON.parse(json), (member, value: unknown) =>
    typeof value === 'string' && !KEPT_FIELDS.has(member) ? ERASED_TEXT : value,
  );
}

/** Receipts per statement. Each deletion also changes three indexes. */
const RECEIPT_SLICE = 100;

/** Removes an account's receipts in slices, because there can be very many. `maxRows` is rounded up to whole slices. */
export async function eraseReceipts(
  database: Database,
  accountId: string,
  { maxRows = Number.POSITIVE_INFINITY, signal }: { readonly maxRows?: number; readonly signal?: AbortSignal | undefined } = {},
): Promise<void> {
  for (let all = 0; all < maxRows; all += RECEIPT_SLICE) {
    signal?.throwIfAborted();
    const some = database.selectFrom('receipts').select('job_id').where('account_id', '=', accountId).limit(RECEIPT_SLICE);
    const { numDeletedRows } = await database.deleteFrom('receipts').where('job_id', 'in', some).executeTakeFirstOrThrow();
    if (numDeletedRows < RECEIPT_SLICE) return;
    // Lets other work use the database and the thread first.
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
}
