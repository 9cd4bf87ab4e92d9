/** `status`: what the running provider is doing, how the coordinator sees it, and what would help. */
import { askStatus } from '../control/control-client.js';
import type { Command } from './command.js';
import { EXIT } from './exit-codes.js';
import { ownerOptions } from './owner-options.js';
import { statusLines } from './status-text.js';
import { print } from './terminal.js';

export const statusCommand: Command = {
  name: 'status',
  summary: 'Shows what the running provider does, what it was given and why.',
  usage: `status [--data-dir DIR] [--json]

Exit codes: 0 jobs may come, 1 the provider runs but no jobs come, 3 no provider runs.`,
  run: status,
};

/** The daemon itself waits three seconds for the coordinator. */
const ANSWER_MS = 6_000;

async function status(args: readonly string[]): Promise<number> {
  const { dataDir, json } = ownerOptions(args);
  const answer = await askStatus(dataDir, ANSWER_MS);
  await print(json ? [JSON.stringify(answer, null, 2)] : statusLines(answer, Date.now()));
  return answer.trust?.routable === true && answer.models.length > 0 ? EXIT.fine : EXIT.needsOwner;
}
