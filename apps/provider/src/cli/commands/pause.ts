/** `pause`: the running provider accepts no more requests, for a while or until `resume`. */
import { settingsTimeZone } from '../../config/read-config.js';
import { isAvailabilityAnswer } from '../../control/availability-routes.js';
import { requestDaemon } from '../../control/control-client.js';
import type { AvailabilityStatus } from '../../control/daemon-status.js';
import { systemTimeZone } from '../../host/condition/time-zone.js';
import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { ownerOptions, UsageError } from '../input/owner-options.js';
import { availabilityText } from '../output/status-text.js';
import { print } from '../output/terminal.js';

export const pauseCommand: Command = {
  name: 'pause',
  summary: 'Stops accepting requests for a while, or until `resume`.',
  usage: `pause [DURATION | until HH:MM] [--data-dir DIR] [--json]

DURATION is for example 30m, 1h30m or 2d, at most 30 days. Without DURATION the pause lasts until \`resume\`, also
across restarts. Running requests get up to 10 minutes to finish, unless availability.when_leaving is "hand_back";
then the models are unloaded.
Exit codes: 0 success, 1 the request failed, 2 invalid command line, 3 no provider is running.`,
  run: pause,
};

const ANSWER_MS = 4_000;

async function pause(args: readonly string[]): Promise<number> {
  const { dataDir, json, words } = ownerOptions(args, {}, { min: 0, max: 2 });
  const { until } = await parsePause(words, settingsTimeZone(dataDir) ?? systemTimeZone());
  const { availability } = await requestDaemon(dataDir, { path: '/v1/pause', body: { until } }, isAvailabilityAnswer, ANSWER_MS);
  await printAvailability(availability, json);
  return EXIT.fine;
}

async function parsePause(words: readonly string[], timeZone: string): Promise<{ until: number | null }> {
  // Loaded on demand, with the library of calendar times.
  const { parsePauseArguments } = await import('../../host/availability/parse-pause.js');
  try {
    return parsePauseArguments(words, Date.now(), timeZone);
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : 'That is not a valid pause.');
  }
}

async function printAvailability(availability: AvailabilityStatus | null, json: boolean): Promise<void> {
  if (json) await print([JSON.stringify({ availability }, null, 2)]);
  else await print([availability === null ? 'The provider is still starting.' : availabilityText(availability)]);
}

/** `resume` ends only the pause. Schedule and host condition may still prevent serving. */
export const resumeCommand: Command = {
  name: 'resume',
  summary: 'Ends a pause.',
  usage: `resume [--data-dir DIR] [--json]

Exit codes: 0 success, 1 the request failed, 2 invalid command line, 3 no provider is running.`,
  run: resume,
};

async function resume(args: readonly string[]): Promise<number> {
  const { dataDir, json } = ownerOptions(args);
  const { availability } = await requestDaemon(dataDir, { path: '/v1/resume', body: {} }, isAvailabilityAnswer, ANSWER_MS);
  await printAvailability(availability, json);
  return EXIT.fine;
}
