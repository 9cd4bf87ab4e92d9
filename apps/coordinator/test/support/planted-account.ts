/** `plantAccount`: adds rows of one account to the tables of the stored-data inventory. Identifying columns get canary texts. */
import { type ColumnMetadata, sql } from 'kysely';
import { STORED_DATA } from '../../src/database/privacy/stored-data.js';
import { columnsOf } from '../../src/database/privacy/stored-table.js';
import type { Database } from '../../src/database/tables.js';

type Value = string | number | boolean | null;
type Row = Readonly<Record<string, Value>>;

export interface PlantedIds {
  /** Id of the account's user, who exists. */
  readonly accountId: string;
  readonly keyId: string;
  readonly providerId: string;
  /** Organisation of another account, with the user as a member. */
  readonly organisationId: string;
  readonly now: number;
}

/** Canary text for a column. */
export function canary(table: string, column: string): string {
  return `canary ${table} ${column}`;
}

/** Columns that identify a person, in exported tables. `auth_users.email` contains the sign-up address, not a canary. */
export function identityColumns(): (readonly [table: string, column: string])[] {
  return [...STORED_DATA].flatMap(([table, entry]) =>
    typeof entry.exported === 'string' ? [] : columnsOf(entry, 'identity').map((column) => [table, column] as const),
  );
}

/** Adds or changes one row per table. Omits the money tables, which the ledger check requires to balance. */
export async function plantAccount(database: Database, ids: PlantedIds): Promise<void> {
  const { accountId, keyId, providerId, organisationId, now } = ids;
  const mark = canary;
  const user = { user_id: accountId };
  const own = { account_id: accountId };
  const rows: Readonly<Record<string, Row>> = {
    auth_passkeys: { id: 'passkey', ...user, credential_id: 'credential' },
    auth_two_factors: { id: 'factor', ...user },
    auth_verifications: { id: 'verification', value: accountId, identifier: 'reset' },
    organisation_members: { organisation_id: organisationId, ...user, role: 'viewer' },
    machine_names: { provider_id: providerId, ...own },
    machine_tokens: { hash: 'token', ...own, provider_id: providerId },
    owner_commands: { id: 'owner command', ...own, provider_id: providerId, actor_id: accountId, at: now, action: '{}' },
    machines_last_seen: { provider_id: providerId, seen_at: now },
    provider_holds: { provider_id: providerId, held_by: 'key:operator' },
    provider_reputations: { provider_id: providerId },
    device_codes: { hash: 'code', user_code: 'CODE', ...own, expires_at: now },
    machine_codes: { hash: 'old code', ...own },
    device_enrolments: { id: 'enrolment', provider_id: providerId, se_key_sha256: 'enclave', state: 'ended', created_at: now },
    device_evidence: { se_key_sha256: 'enclave', kind: 'attestation', enrolment_id: 'enrolment', received_at: now },
    device_commands: { uuid: 'command', enrolment_id: 'enrolment', sent_at: now },
    device_nonces: { se_key_sha256: 'enclave', epoch: 1, created_at: now },
    billing_details: own,
    low_balance_alerts: own,
    payout_accounts: { ...own, payout_id: 'acct_payout' },
    failed_requests: { job_id: 'failed', ...own, api_key_id: keyId, failed_at: now },
    receipts: { job_id: 'receipt', ...own, created_at: now },
    operator_actions: {
      id: 'action',
      at: now,
      operator: 'key:operator',
      action: 'PATCH /admin/v1/accounts/:id',
      subject: accountId,
      details: JSON.stringify({ reason: mark('operator_actions', 'details'), suspended: false }),
    },
  };
  const tables = new Map((await database.introspection.getTables()).map((table) => [table.name, table.columns]));
  for (const [table, row] of Object.entries(rows)) await insert(database, table, tables.get(table) ?? [], row);
  // The user's e-mail address in the event log and in an invitation of the organisation.
  const email = sql`(select email from auth_users where id = ${accountId})`;
  await sql`insert into organisation_events (id, organisation_id, at, actor_id, action, subject)
    values ('event', ${organisationId}, ${now}, ${accountId}, 'member.joined', ${email})`.execute(database);
  await sql`insert into organisation_invitations (id, organisation_id, email, role, token_hash, invited_by, sent_at, sent_count, expires_at)
    values ('invitation', ${organisationId}, ${email}, 'viewer', 'hash', 'somebody', ${now}, 1, ${now})`.execute(database);
  await sql`update auth_users set name = ${mark('auth_users', 'name')}, image = ${mark('auth_users', 'image')} where id = ${accountId}`.execute(
    database,
  );
  await sql`update accounts set name = ${mark('accounts', 'name')} where id = ${accountId}`.execute(database);
  await sql`update api_keys set name = ${mark('api_keys', 'name')}, prefix = ${mark('api_keys', 'prefix')},
    models = ${JSON.stringify([mark('api_keys', 'models')])} where id = ${keyId}`.execute(database);
  await sql`update auth_sessions set ip_address = ${mark('auth_sessions', 'ip_address')},
    user_agent = ${mark('auth_sessions', 'user_agent')} where user_id = ${accountId}`.execute(database);
}

/** Inserts a row. Columns without a value get a canary if they identify a person, else any valid value. */
async function insert(database: Database, name: string, columns: readonly ColumnMetadata[], row: Row): Promise<void> {
  const table = STORED_DATA.get(name);
  if (table === undefined) throw new Error(`${name} is not in the inventory`);
  const identities = columnsOf(table, 'identity');
  const values = columns.map(({ name: column, isNullable, dataType }) => {
    const given = row[column];
    if (given !== undefined) return given;
    if (!identities.includes(column)) return isNullable ? null : valueFor(dataType);
    const text = canary(name, column);
    return column === 'facts' || column === 'payload' ? JSON.stringify({ serial: text }) : text;
  });
  const names = sql.join(columns.map((column) => sql.ref(column.name)));
  await sql`insert into ${sql.table(name)} (${names}) values (${sql.join(values.map((value) => sql.val(value)))})`.execute(database);
}

function valueFor(dataType: string): Value {
  if (/text|char/i.test(dataType)) return 'x';
  if (/bool/i.test(dataType)) return true;
  if (/date|timestamp/i.test(dataType)) return new Date(0).toISOString();
  return 1;
}

/** All rows of all tables, as one text per table. */
export async function contentOfTables(database: Database): Promise<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>();
  for (const { name } of await database.introspection.getTables()) {
    texts.set(name, JSON.stringify((await sql`select * from ${sql.table(name)}`.execute(database)).rows));
  }
  return texts;
}

/** Tables whose rows contain the text. */
export async function tablesWith(database: Database, text: string): Promise<string[]> {
  return [...(await contentOfTables(database))].filter(([, rows]) => rows.includes(text)).map(([name]) => name);
}
