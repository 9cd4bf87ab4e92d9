/** `migrate` command: applies pending database migrations. With `--plan`, only lists them. */
import { migrateDatabase } from '../database/connection/open-database.js';
import { describeMigration, type MigrationDescription } from '../database/migrations/describe-migration.js';
import { tooNew } from '../database/migrations/run-migrations.js';
import { readSchemaState, type SchemaState } from '../database/migrations/schema-state.js';
import { type Command, EXIT, optionsOf } from './command.js';
import { databasePlace, databaseTarget, withUnmigrated } from './command-database.js';
import { settingsOf } from './read-settings.js';

export const migrateCommand: Command = {
  usage: `migrate [--plan] [--json] [--env-file FILE]

Applies the migrations that the database of DATABASE_URL or DATA_DIR lacks, all or none, and creates a missing database file.
Several coordinators and this command may start at once: one applies them, the others wait.

  --plan    shows the schema and the pending migrations, and changes nothing. Coordinators of the previous
            version keep working beside an \`expand\` or \`data\` migration; before \`contract\` they must be stopped.
  --json    prints JSON

\`serve\` applies them at its start, too, unless MIGRATE_ON_START is 0.
Exit codes: 0 done, 1 a migration failed or the database is too new for this version, 2 the settings cannot be used.`,
  async run(args, { env, out, err }) {
    const { plan = false, json = false } = optionsOf(args, { plan: { type: 'boolean' }, json: { type: 'boolean' } });
    const config = settingsOf(env);
    const place = databasePlace(config);
    const state = await withUnmigrated(config, readSchemaState);
    const migrationPlan = planOf(state);
    if (state.refusal !== null) {
      if (json) out(JSON.stringify({ database: place, ...migrationPlan }, null, 2));
      err(tooNew(state.refusal).message);
      return EXIT.problem;
    }
    if (plan) {
      if (json) out(JSON.stringify({ database: place, ...migrationPlan }, null, 2));
      else for (const line of planLines(place, migrationPlan)) out(line);
      return EXIT.ok;
    }
    const applied = await migrateDatabase(databaseTarget(config));
    if (json) out(JSON.stringify({ database: place, applied }, null, 2));
    else for (const line of [...applied.map((name) => `applied ${name}`), `The schema is up to date (${place}).`]) out(line);
    return EXIT.ok;
  },
};

interface PendingMigration extends Pick<MigrationDescription, 'kind' | 'effect'> {
  readonly name: string;
  /** Oldest coordinator version that works with the migrated schema; null: any. */
  readonly oldest_program: string | null;
}

/** JSON output of `--plan`. */
interface Plan {
  /** Newest applied migration; null: the database is empty or missing. */
  readonly schema: string | null;
  readonly applied_count: number;
  readonly pending: readonly PendingMigration[];
  /** Applied migrations of a newer program, unknown to this program. */
  readonly unknown: readonly string[];
  /** Whether coordinators of the previous version may run during and after the migration. */
  readonly previous_version_keeps_working: boolean;
}

function planOf({ applied, pending, unknown }: SchemaState): Plan {
  const described = pending.map((name) => {
    const { kind, effect, oldestProgram } = describeMigration(name);
    return { name, kind, effect, oldest_program: oldestProgram };
  });
  return {
    schema: applied.at(-1) ?? null,
    applied_count: applied.length,
    pending: described,
    unknown,
    previous_version_keeps_working: described.every(({ kind }) => kind !== 'contract'),
  };
}

function planLines(place: string, { schema, applied_count, pending, previous_version_keeps_working }: Plan): string[] {
  const lines = [`database  ${place}`, `schema    ${schema === null ? 'none yet' : `${schema} (${applied_count} migrations)`}`, ''];
  if (pending.length === 0) return [...lines, 'The schema is up to date.'];
  const width = Math.max(...pending.map(({ name }) => name.length)) + 2;
  lines.push(`${pending.length} ${pending.length === 1 ? 'migration' : 'migrations'} would run:`);
  for (const { name, kind, effect } of pending) lines.push(`  ${name.padEnd(width)}${kind}${effect === null ? '' : `: ${effect}`}`);
  // No coordinator uses an empty database, so there is no previous version to advise about.
  if (schema === null) return lines;
  const advice = previous_version_keeps_working
    ? 'Coordinators of the previous version keep working meanwhile and afterwards.'
    : 'Stop all coordinators of the previous version first: they do not work with this schema.';
  return [...lines, '', advice];
}
