/** `start`: registers the daemon with the service manager and starts the service. */

import { readFileSync, statSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { configPath } from '../../config/data-dir.js';
import { readConfig } from '../../config/read-config.js';
import { ControlError, requestStatus } from '../../control/control-client.js';
import type { DaemonStatus } from '../../control/daemon-status.js';
import { serviceDefinition } from '../../service/choose-manager.js';
import { foreignDaemon } from '../../service/foreign-daemon.js';
import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { refusalOutput } from '../foreign-daemon.js';
import { readServeFlags, serveOptions } from '../input/serve-options.js';
import { answeringDaemon, type ServiceCommand, serviceCommand } from '../input/service-options.js';
import { print } from '../output/terminal.js';

export const startCommand: Command = {
  name: 'start',
  summary: 'Starts the provider in the background, now and at login.',
  usage: `start [--data-dir DIR] [--manager launchd|systemd|supervisor] [--json]

Uses the settings of config.toml. The service manager is launchd on macOS, the user's systemd
on Linux, and otherwise a small supervisor process.`,
  run: start,
};

/** Time until the daemon opens its control socket, which precedes model loading. */
const UP_MS = 60_000;

async function start(args: readonly string[]): Promise<number> {
  const command = await serviceCommand(args);
  const { dataDir, manager } = command;
  // Reports a bad setting here instead of in a log.
  serveOptions(readServeFlags(['--data-dir', dataDir]), readConfig(configPath(dataDir)));
  const running = await answeringDaemon(dataDir);
  const state = await manager.state(serviceDefinition(dataDir).label);
  const foreign = foreignDaemon(running, state);
  if (foreign !== null) {
    const { pid, unit } = foreign;
    const problem =
      unit === null
        ? `A provider is already running (process ${pid}), but not as a service. Run: inference-provider stop`
        : `A provider is already running (process ${pid}) under systemd, as ${unit}. Stop the unit first.`;
    await print([refusalOutput(foreign, 'not_started', problem, command)]);
    return EXIT.needsOwner;
  }
  return await launch(command, { previousPid: running?.pid ?? null, isRestart: false });
}

interface Launch {
  /** Null if no daemon ran. */
  readonly previousPid: number | null;
  readonly isRestart: boolean;
}

/** Starts or restarts the service, waits until the daemon answers, and prints the result. */
export async function launch({ dataDir, json, manager }: ServiceCommand, { previousPid, isRestart }: Launch): Promise<number> {
  const definition = serviceDefinition(dataDir);
  const sizeBefore = sizeOf(definition.outputFile);
  const outcome = isRestart ? 'started' : await manager.start(definition);
  if (isRestart) await manager.restart(definition);
  const waiting = {
    dataDir,
    outputFile: definition.outputFile,
    previousPid: outcome === 'already_running' ? null : previousPid,
    limitMs: UP_MS,
  };
  const { status, lastOutput } = await awaitDaemon(waiting, sizeBefore);
  const problem = lastOutput ?? 'no response';
  const advice = await manager.advice(definition);
  if (json)
    await print([
      JSON.stringify(
        { manager: manager.name, outcome, pid: status?.pid ?? null, problem: status === null ? problem : null, advice },
        null,
        2,
      ),
    ]);
  else if (status === null)
    await print([
      `The provider failed to start: ${problem}`,
      'The service manager will try again. For details, run: inference-provider logs --crash',
    ]);
  else if (outcome === 'already_running')
    await print([`The provider is already running (process ${status.pid}, managed by ${manager.name}).`]);
  else
    await print([
      `The provider is running (process ${status.pid}, managed by ${manager.name}). Status: inference-provider status`,
      ...advice,
    ]);
  return status === null ? EXIT.needsOwner : EXIT.fine;
}

const POLL_MS = 100;
/** Most errors of models appear within this time; large models load for minutes. */
const STARTING_MS = 10_000;
const ANSWER_MS = 2_000;

interface StartWait {
  readonly dataDir: string;
  readonly outputFile: string;
  /** Process whose answers do not count; null if all count. */
  readonly previousPid: number | null;
  readonly limitMs: number;
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** Waits until the new daemon runs, still loads after `STARTING_MS`, or has failed. Without an answer, the status is null. */
async function awaitDaemon(
  { dataDir, outputFile, previousPid, limitMs }: StartWait,
  outputSizeBefore: number,
): Promise<{ readonly status: DaemonStatus | null; readonly lastOutput: string | null }> {
  const deadline = performance.now() + limitMs;
  let firstStatusAt: number | null = null;
  for (;;) {
    try {
      const status = await requestStatus(dataDir, ANSWER_MS);
      if (status.pid !== previousPid) {
        firstStatusAt ??= performance.now();
        if (status.state !== 'starting' || performance.now() - firstStatusAt > STARTING_MS) return { status, lastOutput: null };
      }
    } catch (error) {
      if (!(error instanceof ControlError)) throw error;
      // A loading daemon prints nothing; output means that its start failed.
      const lastOutput = outputSince(outputFile, outputSizeBefore);
      if (lastOutput !== null && error.problem === 'not_running') return { status: null, lastOutput };
    }
    if (performance.now() > deadline) return { status: null, lastOutput: outputSince(outputFile, outputSizeBefore) };
    await delay(POLL_MS);
  }
}

/** Last line beyond a size; null if none. */
function outputSince(path: string, size: number): string | null {
  try {
    const added = readFileSync(path).subarray(size).toString('utf8').trim();
    return added === '' ? null : (added.split('\n').at(-1) ?? null);
  } catch {
    return null;
  }
}
