/** `restore` command: calls `restoreBackup` and prints the result. All coordinators must be stopped. */
import { restoreAdvice } from '../backup/restore-advice.js';
import { type Restored, restoreBackup } from '../backup/restore-backup.js';
import { type Command, EXIT, optionsOf, UsageError } from './command.js';
import { settingsOf } from './read-settings.js';
import { untilSignalled } from './until-signalled.js';

/** Origin (name) of a transparency log. C2SP signed-note forbids spaces and plus characters in it. */
const LOG_ORIGIN = /^[A-Za-z0-9._:/-]{1,200}$/;

export const restoreCommand: Command = {
  usage: `restore --from BACKUP [--force] [--new-log ORIGIN] [--keys-from BACKUP | --new-keys] [--keep-sessions] [--postgres-bin DIR]
        [--env-file FILE] [--json]

Verifies a backup, restores it into DATABASE_URL or DATA_DIR, applies this program's migrations, then checks the whole ledger and the
transparency log. Stop all coordinators before. Prints what to redo, because the network returns to an older state.

  --from BACKUP       Folder of one backup, with manifest.json.
  --force             Moves present data aside: the folder is renamed, tables move to another schema. Nothing is deleted.
  --new-log ORIGIN    Begins a new transparency log, such as gateway.example/e2e/log-2. Needed if the old one has published more since.
  --keys-from BACKUP  Another backup of the same network, for one that was made with --exclude-keys.
  --new-keys          Restores without keys. Second factors and image URLs of the backup are lost; needs --new-log.
  --keep-sessions     Keeps the sessions of the backup. By default they end, because some may have been ended since.
  --postgres-bin DIR  Folder of pg_restore and psql; their major version must be the server's.

Exit codes: 0 restored, 1 refused or failed with nothing changed, or restored with problems, or restored but not checked
(stderr says which), 2 the command line or the settings cannot be used.`,
  async run(args, { env, out, err }) {
    const options = optionsOf(args, {
      from: { type: 'string' },
      force: { type: 'boolean' },
      'new-log': { type: 'string' },
      'keys-from': { type: 'string' },
      'new-keys': { type: 'boolean' },
      'keep-sessions': { type: 'boolean' },
      'postgres-bin': { type: 'string' },
      json: { type: 'boolean' },
    });
    const { from, 'keys-from': keysFrom = null, 'new-log': newLogOrigin = null } = options;
    if (from === undefined) throw new UsageError('--from BACKUP is missing: the folder of one backup.');
    const newKeys = options['new-keys'] === true;
    const keepSessions = options['keep-sessions'] === true;
    if (newKeys && keysFrom !== null) throw new UsageError('--keys-from and --new-keys exclude each other.');
    if (newKeys && newLogOrigin === null) throw new UsageError('--new-keys needs --new-log: nobody can sign the old log without its key.');
    if (newLogOrigin !== null && !LOG_ORIGIN.test(newLogOrigin)) {
      throw new UsageError('--new-log must be a name such as gateway.example/e2e/log-2.');
    }
    const config = settingsOf(env);
    const restored = await untilSignalled((signal) =>
      restoreBackup({
        config,
        from,
        force: options.force === true,
        keysFrom,
        newKeys,
        keepSessions,
        newLogOrigin,
        postgresBin: options['postgres-bin'] ?? null,
        signal,
      }),
    );
    const advice = restoreAdvice(restored, { now: Date.now(), keepSessions });
    const { problems, ledger, publishedEntries } = restored;
    if (options.json === true) {
      const { movedAside, newLogKey, openWithdrawals } = restored;
      out(JSON.stringify({ problems, ledger, publishedEntries, movedAside, newLogKey, openWithdrawals, advice }, null, 2));
    } else {
      out(`restored  ${from}, ${ledger.postings.toLocaleString('en')} postings, ${ledger.accounts.toLocaleString('en')} accounts`);
      if (problems.length === 0) out(`checked   ${passedChecks(restored)}`);
      for (const line of ['', ...advice]) out(line);
    }
    for (const problem of problems) err(`PROBLEM: ${problem}`);
    return problems.length === 0 ? EXIT.ok : EXIT.problem;
  },
};

function passedChecks({ publishedEntries, newLogKey, manifest }: Restored): string {
  if (newLogKey !== null) return 'the ledger holds; the transparency log is new';
  if (publishedEntries === null) return 'the ledger holds; there is no transparency log';
  const isCompared = manifest.transparency_log !== null;
  return `the ledger holds; the transparency log ${isCompared ? 'agrees with its checkpoint' : 'agrees with its entries'}`;
}
