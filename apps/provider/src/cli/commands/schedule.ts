/** `schedule`, `schedule set` and `schedule clear`: the serving times in `config.toml`. A running daemon then reads them again. */

import { configPath } from '../../config/data-dir.js';
import { storeSchedule } from '../../config/edit-config.js';
import { readConfig } from '../../config/read-config.js';
import { parseSchedule } from '../../host/availability/parse-schedule.js';
import { type AvailabilityPolicy, policyOf, type Window } from '../../host/availability/policy.js';
import { systemTimeZone } from '../../host/condition/time-zone.js';
import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { ownerOptions, UsageError } from '../input/owner-options.js';
import { print } from '../output/terminal.js';
import { reloadSettings } from '../reload-settings.js';

const SCHEDULE_HELP = `Days: mon tue wed thu fri sat sun, ranges such as mon-fri, or daily, weekdays, weekends. Times: wall-clock time
in the time zone of the settings, else of this machine. An end that is not after the beginning
is on the next day. For example:
  schedule set "mon-fri 22:00-07:00, sat-sun 00:00-24:00"`;

export const scheduleCommand: Command = {
  name: 'schedule',
  summary: 'Shows when this machine serves in the next seven days.',
  usage: 'schedule [--data-dir DIR] [--json]',
  run: async (args) => {
    const { dataDir, json } = ownerOptions(args);
    return show(policyOf(readConfig(configPath(dataDir))), json);
  },
};

export const scheduleSetCommand: Command = {
  name: 'schedule set',
  summary: 'Sets the times at which this machine serves.',
  usage: `schedule set "DAYS HH:MM-HH:MM, ..." [--data-dir DIR] [--json]\n\n${SCHEDULE_HELP}`,
  run: async (args) => {
    const { dataDir, json, words } = ownerOptions(args, {}, { min: 1, max: 64 });
    return change(dataDir, json, windowsOf(words.join(' ')));
  },
};

export const scheduleClearCommand: Command = {
  name: 'schedule clear',
  summary: 'Removes the schedule, so that this machine serves at all times.',
  usage: 'schedule clear [--data-dir DIR] [--json]',
  run: async (args) => {
    const { dataDir, json } = ownerOptions(args);
    return change(dataDir, json, []);
  },
};

/** Throws {@link UsageError}. */
function windowsOf(text: string): Window[] {
  try {
    return parseSchedule(text);
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : 'That is not a valid schedule.');
  }
}

async function change(dataDir: string, json: boolean, windows: readonly Window[]): Promise<number> {
  const config = storeSchedule(configPath(dataDir), windows);
  const { isRunning, problem } = await reloadSettings(dataDir);
  if (problem !== null) {
    const exitCode = await show(policyOf(config), json);
    process.stderr.write(`The schedule is stored, but the running provider did not apply the change (${problem}); restart the provider.\n`);
    return exitCode;
  }
  const note = isRunning
    ? 'The running provider uses the schedule now.'
    : 'No provider runs now; the schedule applies from the next start on.';
  return show(policyOf(config), json, [note]);
}

/** The text form ends with `notes`. */
async function show(policy: AvailabilityPolicy, json: boolean, notes: readonly string[] = []): Promise<number> {
  // Loaded on demand, with the library of calendar times.
  const { scheduleFacts, scheduleLines } = await import('../output/schedule-text.js');
  const facts = scheduleFacts(policy, systemTimeZone(), Date.now());
  await print(json ? [JSON.stringify(facts, null, 2)] : [...scheduleLines(facts, Date.now()), ...notes]);
  return EXIT.fine;
}
