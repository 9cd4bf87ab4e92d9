import type { Database } from '../../src/database/tables.js';
import type { TestDatabase } from '../support/databases.js';

interface MailedAccount {
  readonly id: string;
  readonly now: number;
  readonly isVerified: boolean;
  readonly suspendedAt?: number | null;
}

/** Adds the account of a person with the address `<id>@example.com`. */
export async function addMailedAccount(
  { dialect }: TestDatabase,
  database: Database,
  { id, now, isVerified, suspendedAt = null }: MailedAccount,
): Promise<void> {
  const stamp = dialect === 'postgres' ? new Date(now) : new Date(now).toISOString();
  const stamps = { created_at: stamp, updated_at: stamp } as object;
  const email_verified = dialect === 'postgres' ? isVerified : Number(isVerified);
  await database.insertInto('accounts').values({ id, name: id, created_at: now, suspended_at: suspendedAt }).execute();
  await database
    .insertInto('auth_users')
    .values({ id, name: id, email: `${id}@example.com`, email_verified, ...stamps })
    .execute();
}

/** Adds the organisation `acme`, with the existing accounts `ada` (owner), `ben` (developer) and `cem` (billing). */
export async function addOrganisation(database: Database, now: number): Promise<void> {
  await database.insertInto('accounts').values({ id: 'acme', name: 'Acme', created_at: now }).execute();
  await database.insertInto('organisations').values({ account_id: 'acme', created_by: 'ada', created_at: now }).execute();
  for (const [user_id, role] of [
    ['ada', 'owner'],
    ['ben', 'developer'],
    ['cem', 'billing'],
  ] as const) {
    await database.insertInto('organisation_members').values({ organisation_id: 'acme', user_id, role, joined_at: now }).execute();
  }
}
