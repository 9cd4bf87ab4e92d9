/** `stop`: stops the daemon after its running jobs, until `start`. */
import { setTimeout as delay } from 'node:timers/promises';
import { ControlError, requestDaemon } from '../../control/control-client.js';
import { labelOf } from '../../service/choose-manager.js';
import { ServiceError } from '../../service/service.js';
import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { runningDaemon, serviceCommand } from '../input/service-options.js';
import { print } from '../output/terminal.js';

export const stopCommand: Command = {
  name: 'stop',
  summary: 'Stops the provider after its running requests finish.',
  usage: 'stop [--data-dir DIR] [--manager launchd|systemd|supervisor] [--json]',
  run: stop,
};

const ANSWER_MS = 10_000;
/** Longer than the default drain of 15 seconds. */
const EXIT_TIMEOUT_MS = 60_000;

async function stop(args: readonly string[]): Promise<number> {
  const { dataDir, json, manager } = await serviceCommand(args);
  const outcome = await manager.stop(labelOf(dataDir));
  // Also stops a daemon that was started by hand.
  const other = await runningDaemon(dataDir);
  if (other !== null) await endByHand(dataDir, other.pid);
  const stopped = outcome === 'stopped' || other !== null;
  const text = stopped ? 'The provider has stopped. To start it again, run: inference-provider start' : 'The provider is not running.';
  await print([json ? JSON.stringify({ manager: manager.name, outcome: stopped ? 'stopped' : 'was_not_running' }) : text]);
  return EXIT.fine;
}

const isAnything = (value: unknown): value is unknown => value !== undefined;

async function endByHand(dataDir: string, pid: number): Promise<void> {
  try {
    await requestDaemon(dataDir, { path: '/v1/stop', body: {} }, isAnything, ANSWER_MS);
  } catch (error) {
    if (!(error instanceof ControlError) || error.problem !== 'not_running') throw error;
  }
  const deadline = performance.now() + EXIT_TIMEOUT_MS;
  while ((await runningDaemon(dataDir))?.pid === pid) {
    if (performance.now() > deadline) throw new ServiceError(`the provider (process ${pid}) did not stop in time`);
    await delay(100);
  }
}
