/** `stop`: stops the service of the provider, or a daemon that was started by hand. Running jobs get a limited time to finish. */
import { setTimeout as delay } from 'node:timers/promises';
import { ControlError, requestDaemon } from '../../control/control-client.js';
import type { StopAnswer } from '../../control/routes.js';
import { labelOf } from '../../service/choose-manager.js';
import { ServiceError } from '../../service/service.js';
import { systemdUnitOf } from '../../service/systemd-unit-of.js';
import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { unitText } from '../foreign-daemon.js';
import { answeringDaemon, serviceCommand } from '../input/service-options.js';
import { print } from '../output/terminal.js';

export const stopCommand: Command = {
  name: 'stop',
  summary: 'Stops the provider after its running requests finish.',
  usage: 'stop [--data-dir DIR] [--manager launchd|systemd|supervisor] [--json]',
  run: stop,
};

const ANSWER_MS = 10_000;
/** Beyond the time for running jobs. */
const EXIT_TIMEOUT_MS = 45_000;
/** If the daemon does not report the time. */
const DEFAULT_DRAIN_MS = 15_000;

async function stop(args: readonly string[]): Promise<number> {
  const { dataDir, json, manager } = await serviceCommand(args);
  const outcome = await manager.stop(labelOf(dataDir));
  // A daemon that still answers does not belong to the service.
  const otherDaemon = await answeringDaemon(dataDir);
  if (otherDaemon !== null) {
    const { pid } = otherDaemon;
    const unit = systemdUnitOf(pid);
    // The owner must stop the unit, which could start a daemon stopped here again.
    if (unit !== null) {
      await print([json ? JSON.stringify({ manager: manager.name, outcome: 'not_stopped', unit }) : unitText('stop', unit, pid)]);
      return EXIT.needsOwner;
    }
    await stopOverSocket(dataDir, pid);
  }
  const hasStopped = outcome === 'stopped' || otherDaemon !== null;
  const text = hasStopped ? 'The provider has stopped. To start it again, run: inference-provider start' : 'The provider is not running.';
  await print([json ? JSON.stringify({ manager: manager.name, outcome: hasStopped ? 'stopped' : 'was_not_running' }) : text]);
  return EXIT.fine;
}

/** Earlier versions answer without `drain_ms`. */
const isAnswer = (value: unknown): value is Partial<StopAnswer> | null => typeof value === 'object';

/**
 * Asks a daemon to stop over its control socket, and waits until the process `pid` no longer answers there.
 *
 * @throws ServiceError if the daemon still answers after its time for running jobs and `EXIT_TIMEOUT_MS`; ControlError if it refuses.
 */
export async function stopOverSocket(dataDir: string, pid: number, clock: StopClock = SYSTEM_CLOCK): Promise<void> {
  let drainMs = DEFAULT_DRAIN_MS;
  try {
    const answer = await requestDaemon(dataDir, { path: '/v1/stop', body: {} }, isAnswer, ANSWER_MS);
    drainMs = answer?.drain_ms ?? DEFAULT_DRAIN_MS;
  } catch (error) {
    if (!(error instanceof ControlError) || error.problem !== 'not_running') throw error;
  }
  const deadline = clock.now() + drainMs + EXIT_TIMEOUT_MS;
  while ((await answeringDaemon(dataDir))?.pid === pid) {
    if (clock.now() > deadline) throw new ServiceError(`the provider (process ${pid}) did not stop in time`);
    await clock.wait(100);
  }
}

interface StopClock {
  readonly now: () => number;
  readonly wait: (ms: number) => Promise<unknown>;
}

const SYSTEM_CLOCK: StopClock = { now: () => performance.now(), wait: delay };
