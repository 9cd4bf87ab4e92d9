/** `earnings`: earnings of this machine by day and by model, in the owner's time zone. */

import { type ChipPower, chipPower } from '@inference/protocol';
import { readAccount } from '../../account/account-file.js';
import { readActivity } from '../../account/duty-cycle.js';
import { fetchEarnings, MAX_DAYS, UnlinkedError, viewOf } from '../../account/earnings.js';
import { electricityOf, forecastOf } from '../../account/earnings-forecast.js';
import { isTimeZone, settingsTimeZone } from '../../config/read-config.js';
import { readHostFacts } from '../../host/hardware/host-facts.js';
import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { ownerOptions, UsageError } from '../input/owner-options.js';
import { earningsCsv, earningsLines, forecastLines } from '../output/earnings-text.js';
import { print } from '../output/terminal.js';

export const earningsCommand: Command = {
  name: 'earnings',
  summary: "Shows this machine's earnings: today, this week, by model and by day.",
  usage: `earnings [--days N] [--time-zone NAME] [--csv] [--electricity-price USD] [--watts N] [--data-dir DIR] [--json]

--csv prints one line per day and model for a spreadsheet. --electricity-price, in USD per kWh, estimates the cost of
electricity from Apple's published power of the chip's desktop Mac; --watts overrides the power under load.
Days follow the time zone in the settings, else that of this system. "busy" is the share of the connected time spent on requests.
Exit codes: 0 success, 1 this machine is not linked to an account, 4 the coordinator is unreachable.`,
  run: earnings,
};

const DEFAULT_DAYS = 7;

async function earnings(args: readonly string[]): Promise<number> {
  const { dataDir, json, values } = ownerOptions(args, {
    days: { type: 'string' },
    'time-zone': { type: 'string' },
    csv: { type: 'boolean' },
    'electricity-price': { type: 'string' },
    watts: { type: 'string' },
  });
  const csv = values.csv === true;
  if (csv && json) throw new UsageError('--csv and --json cannot be used together.');
  const price = positive('--electricity-price', values['electricity-price'], 10);
  const watts = positive('--watts', values.watts, 2000);
  if (watts !== null && price === null) throw new UsageError('--watts needs --electricity-price.');
  const days = daysOf(values.days);
  const timeZone = timeZoneOf(values['time-zone'], dataDir);
  const account = readAccount(dataDir);
  if (account === null) {
    process.stderr.write(
      'This machine is not linked to an account. Run "inference-provider login". Earnings until then are held for you.\n',
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
  if (csv) {
    await print(earningsCsv(answer));
    return EXIT.fine;
  }
  const forecast = forecastOf(view);
  const electricity = price === null ? null : electricityOf(view, await powerOf(watts), price);
  await print(
    json
      ? [JSON.stringify({ ...answer, summary: view, forecast, electricity }, null, 2)]
      : [...earningsLines(answer, view), '', ...forecastLines(forecast, electricity, price !== null)],
  );
  return EXIT.fine;
}

/** `loadWatts`, if given, replaces the chip's. Null if unknown. */
async function powerOf(loadWatts: number | null): Promise<ChipPower | null> {
  const known = chipPower((await readHostFacts()).chip);
  return loadWatts === null ? known : { idleWatts: Math.min(known?.idleWatts ?? 0, loadWatts), maxWatts: loadWatts };
}

function positive(name: string, text: string | boolean | undefined, max: number): number | null {
  if (typeof text !== 'string') return null;
  const value = Number(text);
  if (!/^\d+(?:\.\d+)?$/.test(text) || value <= 0 || value > max) throw new UsageError(`${name} must be a number above 0, at most ${max}.`);
  return value;
}

function daysOf(text: string | boolean | undefined): number {
  if (text === undefined) return DEFAULT_DAYS;
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
