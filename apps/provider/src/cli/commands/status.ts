/** `status`: prints whether this machine gets requests, with reason and next step, and the coordinator's view. */
import { ControlError, requestStatus } from '../../control/control-client.js';
import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { ownerOptions, UsageError } from '../input/owner-options.js';
import { statusLines } from '../output/status-text.js';
import { print } from '../output/terminal.js';
import { StatusPoller } from '../watch/status-poller.js';
import { watch } from '../watch/watch.js';
import { timeZoneOf } from './earnings.js';

export const statusCommand: Command = {
  name: 'status',
  summary: 'Shows whether this machine gets requests, and if not, why.',
  usage: `status [--watch] [--data-dir DIR] [--json]

--watch keeps the view up to date until q or Ctrl-C. Without a terminal, --watch prints a line per change.
--json prints the status as JSON, or {"state": "not_running", "problem": …} if no provider answers.
Exit codes: 0 ready for requests, 1 running but not getting requests, 3 not running. With --watch: 0.`,
  run: status,
};

/** Longer than the daemon waits for the coordinator (`VIEW_MS`). */
const ANSWER_MS = 6_000;

async function status(args: readonly string[]): Promise<number> {
  const { dataDir, json, values } = ownerOptions(args, { watch: { type: 'boolean' } });
  const isWatched = values.watch === true;
  if (isWatched && json) throw new UsageError('--watch and --json cannot be used together.');
  const poller = new StatusPoller(dataDir, timeZoneOf(undefined, dataDir));
  if (isWatched) {
    await watch(poller);
    return EXIT.fine;
  }
  const [answer, earnings] = await Promise.all([
    requestStatus(dataDir, ANSWER_MS).catch((error: unknown) => problemOf(error, json)),
    json ? null : poller.earnings(),
  ]);
  if (answer instanceof ControlError) {
    const state = answer.problem === 'not_running' ? 'not_running' : 'not_answering';
    await print([JSON.stringify({ state, problem: answer.message }, null, 2)]);
    return answer.problem === 'not_running' ? EXIT.notRunning : EXIT.needsOwner;
  }
  await print(json ? [JSON.stringify(answer, null, 2)] : statusLines(answer, Date.now(), earnings));
  return answer.trust?.routable === true && answer.models.length > 0 ? EXIT.fine : EXIT.needsOwner;
}

/** Throws errors that are not printed as JSON. */
function problemOf(error: unknown, json: boolean): ControlError {
  if (json && error instanceof ControlError) return error;
  throw error;
}
