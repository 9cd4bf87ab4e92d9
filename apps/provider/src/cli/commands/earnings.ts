/** `earnings`: earnings of this machine by day and by model, in the owner's time zone. */
import { readAccount } from '../../account/account-file.js';
import { readActivity } from '../../account/duty-cycle.js';
import { fetchEarnings, MAX_DAYS, UnlinkedError, viewOf } from '../../account/earnings.js';
import { isTimeZone, settingsTimeZone } from '../../config/read-config.js';
import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { ownerOptions, UsageError } from '../input/owner-options.js';
import { earningsLines } from '../output/earnings-text.js';
import { print } from '../output/terminal.js';

export const earningsCommand: Command = {
  name: 'earnings',
  summary: 'Shows earnings of this machine: today, this week, by model and by day.',
  usage: `earnings [--days N] [--time-zone NAME] [--data-dir DIR] [--json]

Days use the time zone of the settings, or of this system. "busy" is the share of the connected time with running jobs.
Exit codes: 0 success, 1 this machine is not linked to an account, 4 the coordinator is unreachable.`,
  run: earnings,
};

const DAYS = 7;

async function earnings(args: readonly string[]): Promise<number> {
  const { dataDir, json, values } = ownerOptions(args, { days: { type: 'string' }, 'time-zone': { type: 'string' } });
  const days = daysOf(values.days);
  const timeZone = timeZoneOf(values['time-zone'], dataDir);
  const account = readAccount(dataDir);
  if (account === null) {
    process.stderr.write(
      'This machine is not linked to an account. Run "inference-provider login"; earnings until then are held for you.\n',
    );
    return EXIT.needsOwner;
  }
  const answer = await fetchEarnings(account, { days, timeZone }).catch((error: unknown) => {
    if (error instanceof UnlinkedError) return null;
    throw error;
  });
  if (answer === null) {
    process.stderr.write('This machine is no longer linked to an account: its token was revoked. Run "inference-provider login".\n');
    return EXIT.needsOwner;
  }
  const view = viewOf(answer, readActivity(dataDir));
  await print(json ? [JSON.stringify({ ...answer, summary: view }, null, 2)] : earningsLines(answer, view));
  return EXIT.fine;
}

function daysOf(text: string | boolean | undefined): number {
  if (text === undefined) return DAYS;
  const days = Number(text);
  if (!/^\d+$/.test(String(text)) || days < 1 || days > MAX_DAYS)
    throw new UsageError(`--days must be a whole number from 1 to ${MAX_DAYS}.`);
  return days;
}

/** Time zone of the option, else of the settings, else of the system. Throws {@link UsageError}. */
export function timeZoneOf(flag: string | boolean | undefined, dataDir: string): string {
  if (typeof flag !== 'string') {
    const zone = settingsTimeZone(dataDir) ?? Intl.DateTimeFormat().resolvedOptions().timeZone;
    return isTimeZone(zone) ? zone : 'UTC';
  }
  if (!isTimeZone(flag)) throw new UsageError('--time-zone must be the name of a time zone such as Europe/Berlin.');
  return flag;
}
