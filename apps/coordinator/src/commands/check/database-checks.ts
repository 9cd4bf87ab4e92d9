/** Database part of the command `check`: connection, schema, a write that is rolled back, clock, and accounts with the admin flag. */
import { sql } from 'kysely';
import type { Config } from '../../config/config.js';
import { databaseTime } from '../../database/connection/database-clock.js';
import { dialectOf } from '../../database/connection/dialect.js';
import { databaseError, openDatabase } from '../../database/connection/open-database.js';
import { readSchemaState, type SchemaState } from '../../database/migrations/schema-state.js';
import type { Database } from '../../database/tables.js';
import { databasePlace, databaseTarget, withUnmigrated } from '../command-database.js';
import { type Finding, ok, problem, skipped, warning } from './finding.js';

/** Clock differences between database and coordinator, in milliseconds. They matter because receipts and challenges contain times. */
const PROBLEM_SKEW_MS = 2000;
const WARNING_SKEW_MS = 500;
/** Oldest supported PostgreSQL, in the form of its setting `server_version_num`. */
const MIN_POSTGRES_VERSION_NUM = 140_000;

/** Findings by the name of the check that prints them. */
interface DatabaseFindings {
  readonly database: readonly Finding[];
  readonly clock: readonly Finding[];
  readonly operators: readonly Finding[];
}

/** Rejects with StartupError if the database cannot be read or written. */
export async function checkDatabase(config: Config): Promise<DatabaseFindings> {
  const driver = checkSqliteDriver(config, process.versions.node);
  const { state, clock, server } = await withUnmigrated(config, async (database) => {
    const state = await readSchemaState(database);
    if (database === null) return { state, clock: [skipped('there is no database yet')], server: [] };
    return { state, clock: await checkClock(database), server: await checkServer(database, state) };
  });
  const schema = schemaFinding(config, state);
  if (schema.state !== 'ok') {
    return { database: [schema, ...server, ...driver], clock, operators: [skipped('the schema is not up to date')] };
  }
  const database = await openDatabase(databaseTarget(config), { migrate: false });
  try {
    await writeAndRead(database).catch((error: unknown) => {
      throw databaseError('cannot be written', error);
    });
    const operators = await checkOperators(database, config).catch((error: unknown) => {
      throw databaseError('cannot be read', error);
    });
    return { database: [schema, ...server, ...driver], clock, operators };
  } finally {
    await database.destroy();
  }
}

function schemaFinding(config: Config, { applied, pending, refusal }: SchemaState): Finding {
  const place = databasePlace(config);
  if (refusal !== null) {
    return problem(
      `${place}: the schema is too new: ${refusal}`,
      'Install a newer version, or restore the backup from before the upgrade (docs/upgrading.md).',
    );
  }
  if (pending.length === 0) return ok(`${place}: read and written, schema ${applied.at(-1)}`);
  const gap = applied.length === 0 ? 'no schema yet' : `${pending.length} of ${applied.length + pending.length} migrations are missing`;
  const remedy = 'To apply: inference-coordinator migrate';
  if (!config.migrateOnStart) return problem(`${place}: ${gap}, and MIGRATE_ON_START is 0`, remedy);
  return warning(`${place}: ${gap}`, `${remedy}. The next start would apply them, too.`);
}

/** Warns of Node versions on which the SQLite driver, compiled against Node's headers, may abort the process (nodejs/node#65446). */
export function checkSqliteDriver(config: Pick<Config, 'dataDir' | 'databaseUrl'>, nodeVersion: string): Finding[] {
  const [major = 0, minor = 0] = nodeVersion.split('.').map(Number);
  if ('url' in databaseTarget(config) || major < 24 || (major === 24 && minor < 19)) return [];
  return [
    warning(
      `Node ${nodeVersion}: the SQLite driver can end the process with "Assertion failed: (env) != nullptr"`,
      'Use Node 22, or 24.18 (docs/support.md), or PostgreSQL (DATABASE_URL).',
    ),
  ];
}

/** Problems of the PostgreSQL server: version, encoding, and the right to create tables if migrations are pending. */
async function checkServer(database: Database, { pending }: SchemaState): Promise<Finding[]> {
  if (dialectOf(database) === 'sqlite') return [];
  const { rows } = await sql<{ version: number; name: string; may_create: boolean; encoding: string }>`
    select current_setting('server_version_num')::int as version, current_setting('server_version') as name,
      current_setting('server_encoding') as encoding,
      has_schema_privilege(current_schema(), 'CREATE') as may_create`.execute(database);
  const [server] = rows;
  if (server === undefined) return [];
  const findings: Finding[] = [];
  if (server.version < MIN_POSTGRES_VERSION_NUM)
    findings.push(warning(`PostgreSQL ${server.name} is older than 14`, 'Upgrade the server.'));
  if (server.encoding !== 'UTF8')
    findings.push(problem(`the database has the encoding ${server.encoding}`, 'Create it with the encoding UTF8.'));
  if (pending.length > 0 && !server.may_create) {
    findings.push(problem('this user may not create tables there', 'Make the user the owner of the database.'));
  }
  return findings;
}

async function checkClock(database: Database): Promise<Finding[]> {
  if (dialectOf(database) === 'sqlite') return [skipped('SQLite has the clock of this machine')];
  const before = Date.now();
  const { at } = await database.selectNoFrom(databaseTime(database).as('at')).executeTakeFirstOrThrow();
  const skewMs = Math.round(at - (before + Date.now()) / 2);
  const ahead = skewMs > 0 ? 'ahead of' : 'behind';
  const text = `the database server is ${Math.abs(skewMs)} ms ${ahead} this machine`;
  const remedy = 'Synchronise both clocks (timedatectl set-ntp true).';
  if (Math.abs(skewMs) > PROBLEM_SKEW_MS) return [problem(text, remedy)];
  return [Math.abs(skewMs) > WARNING_SKEW_MS ? warning(text, remedy) : ok(text)];
}

class IntendedRollback extends Error {}

/** Writes a row, reads it in the same transaction, and rolls back. Throws if either fails. */
async function writeAndRead(database: Database): Promise<void> {
  const row = { name: `check ${process.pid} ${Date.now()}`, value: '00' };
  const work = database.transaction().execute(async (transaction) => {
    await transaction.insertInto('secrets').values(row).execute();
    const read = await transaction.selectFrom('secrets').select('value').where('name', '=', row.name).executeTakeFirst();
    if (read?.value !== row.value) throw new Error('a written row was read with another value');
    throw new IntendedRollback();
  });
  await work.catch((error: unknown) => {
    if (!(error instanceof IntendedRollback)) throw error;
  });
}

async function checkOperators(database: Database, { console: { adminKey } }: Config): Promise<Finding[]> {
  const { count } = await database
    .selectFrom('accounts')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('admin_since', 'is not', null)
    .where('deleted_at', 'is', null)
    .executeTakeFirstOrThrow();
  const accounts = Number(count);
  if (accounts > 0) return [ok(`${accounts} ${accounts === 1 ? 'account has' : 'accounts have'} the admin flag`)];
  if (adminKey !== null) return [ok('ADMIN_KEY opens the admin API; no account has the admin flag')];
  return [warning('no account has the admin flag', 'To create one: inference-coordinator admin create --email you@example.com')];
}
