/** Creates indexes for the export and the erasure of an account, and for queries of closed accounts. */
import { type Kysely, type Migration, sql } from 'kysely';

export const dataProtection: Migration = {
  async up(db: Kysely<unknown>) {
    const index = (name: string, table: string, columns: string[]) => db.schema.createIndex(name).on(table).columns(columns).execute();
    await index('receipts_by_account', 'receipts', ['account_id', 'created_at', 'job_id']);
    await index('operator_actions_by_operator', 'operator_actions', ['operator', 'id']);
    await index('organisation_events_by_actor', 'organisation_events', ['actor_id', 'id']);
    await index('organisation_events_by_subject', 'organisation_events', ['subject']);
    await index('organisation_invitations_by_email', 'organisation_invitations', ['email']);
    await index('device_enrolments_by_provider', 'device_enrolments', ['provider_id']);
    await db.schema
      .createIndex('accounts_by_deletion')
      .on('accounts')
      .column('deleted_at')
      .where(sql.ref('deleted_at'), 'is not', null)
      .execute();
  },
};
