/** `stop`: stops the daemon after its running jobs, until `start`. */
import { setTimeout as delay } from 'node:timers/promises';
import { ControlError, requestDaemon } from '../../control/control-client.js';
import type { StopAnswer } from '../../control/routes.js';
import { labelOf } from '../../service/choose-manager.js';
import { ServiceError } from '../../service/service.js';
import { systemdUnitOf } from '../../service/systemd-unit-of.js';
import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { unitText } from '../foreign-daemon.js';
import { runningDaemon, serviceCommand } from '../input/service-options.js';
import { print } from '../output/terminal.js';

export const stopCommand: Command = {
  name: 'stop',
  summary: 'Stops the provider after its running requests finish.',
  usage: 'stop [--data-dir DIR] [--manager launchd|systemd|supervisor] [--json]',
  run: stop,
};

const ANSWER_MS = 10_000;
/** Time to exit, beyond the time for running jobs. */
const EXIT_TIMEOUT_MS = 45_000;
/** Time for running jobs, in milliseconds, if the daemon does not report the time. */
const DEFAULT_DRAIN_MS = 15_000;

async function stop(args: readonly string[]): Promise<number> {
  const { dataDir, json, manager } = await serviceCommand(args);
  const outcome = await manager.stop(labelOf(dataDir));
  // Also stops a daemon that was started by hand.
  const other = await runningDaemon(dataDir);
  if (other !== null) {
    // Such a unit may start the daemon again, and stays enabled.
    const unit = systemdUnitOf(other.pid);
    if (unit !== null) {
      await print([json ? JSON.stringify({ manager: manager.name, outcome: 'not_stopped', unit }) : unitText('stop', unit, other.pid)]);
      return EXIT.needsOwner;
    }
    await stopByHand(dataDir, other.pid);
  }
  const stopped = outcome === 'stopped' || other !== null;
  const text = stopped ? 'The provider has stopped. To start it again, run: inference-provider start' : 'The provider is not running.';
  await print([json ? JSON.stringify({ manager: manager.name, outcome: stopped ? 'stopped' : 'was_not_running' }) : text]);
  return EXIT.fine;
}

/** Earlier versions answer without `drain_ms`. */
const isAnswer = (value: unknown): value is Partial<StopAnswer> | null => typeof value === 'object';

/** Stops a daemon, and waits until its process has ended. `clock` is replaced by tests. */
export async function stopByHand(dataDir: string, pid: number, clock: StopClock = SYSTEM_CLOCK): Promise<void> {
  let drainMs = DEFAULT_DRAIN_MS;
  try {
    const answer = await requestDaemon(dataDir, { path: '/v1/stop', body: {} }, isAnswer, ANSWER_MS);
    drainMs = answer?.drain_ms ?? DEFAULT_DRAIN_MS;
  } catch (error) {
    if (!(error instanceof ControlError) || error.problem !== 'not_running') throw error;
  }
  const deadline = clock.now() + drainMs + EXIT_TIMEOUT_MS;
  while ((await runningDaemon(dataDir))?.pid === pid) {
    if (clock.now() > deadline) throw new ServiceError(`the provider (process ${pid}) did not stop in time`);
    await clock.wait(100);
  }
}

interface StopClock {
  /** Milliseconds. */
  readonly now: () => number;
  readonly wait: (ms: number) => Promise<unknown>;
}

const SYSTEM_CLOCK: StopClock = { now: () => performance.now(), wait: delay };
