/** `backup` command: calls `createBackup` and prints the result. Coordinators may keep running. */
import { createRequire } from 'node:module';
import { createBackup } from '../backup/create-backup.js';
import type { Manifest } from '../backup/manifest.js';
import type { Environment } from '../config/environment.js';
import { type Command, EXIT, optionsOf, UsageError } from './command.js';
import { settingsOf } from './read-settings.js';
import { untilSignalled } from './until-signalled.js';

/** Settings with secrets or file names, which a restored coordinator needs too. A backup records their names, not their values. */
const NAMED_SETTINGS =
  /^(AUTH_SECRET|ADMIN_KEY|PUBLIC_URL|AGENT_RELEASES|LOG_(ORIGIN|WITNESSES|WITNESS_QUORUM)|(STRIPE|MAIL|SMTP|MDM|NATS)_[A-Z_]+?)(_FILE)?$/;
const MAX_NAMED_SETTINGS = 100;
const MAX_KEPT_BACKUPS = 10_000;

export const backupCommand: Command = {
  usage: `backup --out DIR [--keep N] [--images] [--exclude-keys] [--postgres-bin DIR] [--env-file FILE] [--json]

Writes DIR/coordinator-<time>, a folder with one consistent copy of the database (a database file, or a dump by pg_dump), the keys of
DATA_DIR and of the database, and manifest.json. The coordinator may run meanwhile.

  --out DIR           Folder of backups, created if missing. The new backup appears in it when complete.
  --keep N            Afterwards removes all but the newest N backups of DIR.
  --images            Copies stored images too. Their URLs expire after IMAGE_URL_SECONDS (an hour by default).
  --exclude-keys      Leaves out the keys. Such a backup is restored with --keys-from another backup that has them.
  --postgres-bin DIR  Folder of pg_dump; its major version must be the server's.

A backup contains secrets: keys, hashes of passwords, mail addresses. It is readable by its owner only; encrypt it before it leaves the
machine. Settings and the files that they name are not part of it.
Exit codes: 0 written, 1 failed (no incomplete backup stays), 2 the command line or the settings cannot be used, 3 written, but the backup
may not be durable yet, or old backups could not be removed (stderr says why).`,
  async run(args, { env, out, err }) {
    const options = optionsOf(args, {
      out: { type: 'string' },
      keep: { type: 'string' },
      images: { type: 'boolean' },
      'exclude-keys': { type: 'boolean' },
      'postgres-bin': { type: 'string' },
      json: { type: 'boolean' },
    });
    if (options.out === undefined) throw new UsageError('--out DIR is missing: the folder of backups.');
    const { out: folder } = options;
    const keep = options.keep === undefined ? null : keptCount(options.keep);
    const config = settingsOf(env);
    const begun = performance.now();
    const { path, manifest, rotation } = await untilSignalled((signal) =>
      createBackup({
        config,
        out: folder,
        keep,
        hasKeys: options['exclude-keys'] !== true,
        hasImages: options.images === true,
        postgresBin: options['postgres-bin'] ?? null,
        programVersion: (createRequire(import.meta.url)('#package.json') as { version: string }).version,
        settings: namedSettings(env),
        signal,
      }),
    );
    const { removed, problems: warnings } = rotation;
    if (options.json === true) out(JSON.stringify({ path, manifest, removed, warnings }, null, 2));
    else
      for (const line of [...describe(path, manifest, (performance.now() - begun) / 1000), ...removed.map((name) => `removed ${name}`)])
        out(line);
    for (const warning of warnings) err(`WARNING: The backup is complete, but ${warning}`);
    return warnings.length === 0 ? EXIT.ok : EXIT.doneWithWarnings;
  },
};

/** Names of the set variables that match {@link NAMED_SETTINGS}. */
function namedSettings(env: Environment): string[] {
  return Object.keys(env)
    .filter((name) => NAMED_SETTINGS.test(name) && env[name])
    .sort()
    .slice(0, MAX_NAMED_SETTINGS);
}

function keptCount(text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < 1 || value > MAX_KEPT_BACKUPS) {
    throw new UsageError(`--keep must be a whole number from 1 to ${MAX_KEPT_BACKUPS}, not ${JSON.stringify(text)}.`);
  }
  return value;
}

function describe(path: string, { files, ledger, transparency_log: log, database, schema, has_keys }: Manifest, seconds: number): string[] {
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  const kind = database.kind === 'postgres' ? `PostgreSQL ${database.server_version}` : 'database file';
  return [
    `backup    ${path}`,
    `size      ${(bytes / 1e6).toFixed(1)} MB in ${files.length} files, ${seconds.toFixed(1)} s`,
    `database  ${kind}, schema ${schema}`,
    ledger === null
      ? 'ledger    not read: the schema is not the one of this program'
      : `ledger    ${ledger.postings.toLocaleString('en')} postings, ${ledger.accounts.toLocaleString('en')} accounts`,
    ...(log === null ? [] : [`log       ${log.published_size.toLocaleString('en')} published entries`]),
    has_keys ? 'keys      included: store this backup like a password' : 'keys      left out: restoring needs --keys-from',
  ];
}
