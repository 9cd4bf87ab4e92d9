/** `resume`: ends a pause. Schedule and host condition may still prevent serving. */
import { isAvailabilityAnswer } from '../../control/availability-routes.js';
import { requestDaemon } from '../../control/control-client.js';
import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { ownerOptions } from '../input/owner-options.js';
import { printAvailability } from './pause.js';

export const resumeCommand: Command = {
  name: 'resume',
  summary: 'Ends a pause.',
  usage: `resume [--data-dir DIR] [--json]

Exit codes: 0 done, 2 the command line cannot be understood, 3 no provider runs.`,
  run: resume,
};

const ANSWER_MS = 4_000;

async function resume(args: readonly string[]): Promise<number> {
  const { dataDir, json } = ownerOptions(args);
  const { availability } = await requestDaemon(dataDir, { path: '/v1/resume', body: {} }, isAvailabilityAnswer, ANSWER_MS);
  await printAvailability(availability, json);
  return EXIT.fine;
}
