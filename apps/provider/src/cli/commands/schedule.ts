/** `schedule`: shows, sets and clears the serving times in `config.toml`, and preserves the comments of the file. */

import { configPath } from '../../config/data-dir.js';
import { storeSchedule } from '../../config/edit-config.js';
import { readConfig } from '../../config/read-config.js';
import { ControlError, requestDaemon } from '../../control/control-client.js';
import { parseSchedule } from '../../host/availability/parse-schedule.js';
import { type AvailabilityPolicy, policyOf, type Window } from '../../host/availability/policy.js';
import { systemTimeZone } from '../../host/condition/time-zone.js';
import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { ownerOptions, UsageError } from '../input/owner-options.js';
import { print } from '../output/terminal.js';

const COMMON = `Days: mon tue wed thu fri sat sun, ranges such as mon-fri, or daily, weekdays, weekends. Times: wall-clock time
in the time zone of the settings or of this machine; an end not after the beginning is on
the next day. For example:
  schedule set "mon-fri 22:00-07:00, sat-sun 00:00-24:00"`;

export const scheduleCommand: Command = {
  name: 'schedule',
  summary: 'Shows when this machine serves in the next seven days.',
  usage: 'schedule [--data-dir DIR] [--json]',
  run: async (args) => {
    const { dataDir, json } = ownerOptions(args);
    return show(policyOf(readConfig(configPath(dataDir))), json, []);
  },
};

export const scheduleSetCommand: Command = {
  name: 'schedule set',
  summary: 'Sets the times at which this machine serves.',
  usage: `schedule set "DAYS HH:MM-HH:MM, ..." [--data-dir DIR] [--json]\n\n${COMMON}`,
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

const ANSWER_MS = 6_000;

function windowsOf(text: string): Window[] {
  try {
    return parseSchedule(text);
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : 'That is not a valid schedule.');
  }
}

async function change(dataDir: string, json: boolean, windows: readonly Window[]): Promise<number> {
  const config = storeSchedule(configPath(dataDir), windows);
  return show(policyOf(config), json, [await reloadSettings(dataDir)]);
}

async function show(policy: AvailabilityPolicy, json: boolean, notes: readonly string[]): Promise<number> {
  // Loaded on demand, with the library of calendar times.
  const { scheduleFacts, scheduleLines } = await import('../output/schedule-text.js');
  const facts = scheduleFacts(policy, systemTimeZone(), Date.now());
  await print(json ? [JSON.stringify(facts, null, 2)] : [...scheduleLines(facts, Date.now()), ...notes]);
  return EXIT.fine;
}

/** Makes a running daemon read its settings again. Returns a sentence about the result. */
async function reloadSettings(dataDir: string): Promise<string> {
  const isAnything = (value: unknown): value is unknown => value !== undefined;
  try {
    await requestDaemon(dataDir, { path: '/v1/reload', body: {} }, isAnything, ANSWER_MS);
    return 'The running provider uses the schedule now.';
  } catch (error) {
    if (!(error instanceof ControlError)) throw error;
    if (error.problem === 'not_running') return 'No provider runs now; the schedule applies from the next start on.';
    return `The schedule is stored, but the running provider did not apply the change (${error.message}); restart the provider.`;
  }
}
