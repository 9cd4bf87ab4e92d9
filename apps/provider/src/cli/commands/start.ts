/** `start`: registers the daemon with the service manager and starts the service. */

import { configPath } from '../../config/data-dir.js';
import { readConfig } from '../../config/read-config.js';
import { serviceDefinition } from '../../service/choose-manager.js';
import { foreignDaemon } from '../../service/foreign-daemon.js';
import { awaitDaemon, sizeOf } from '../await-daemon.js';
import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { refusalOutput } from '../foreign-daemon.js';
import { readServeFlags, serveOptions } from '../input/serve-options.js';
import { runningDaemon, type ServiceCommand, serviceCommand } from '../input/service-options.js';
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
  const { dataDir, json, manager } = command;
  // Reports a bad setting here instead of in a log.
  serveOptions(readServeFlags(['--data-dir', dataDir]), readConfig(configPath(dataDir)));
  const running = await runningDaemon(dataDir);
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
  return await launch(command, json, running?.pid ?? null);
}

/**
 * Starts or restarts the service, waits until the daemon answers, and prints the result.
 *
 * @param previousPid Process id of the previous daemon; null if none ran.
 */
export async function launch(
  { dataDir, manager }: ServiceCommand,
  json: boolean,
  previousPid: number | null,
  isRestart = false,
): Promise<number> {
  const definition = serviceDefinition(dataDir);
  const output = sizeOf(definition.outputFile);
  const outcome = isRestart ? 'started' : await manager.start(definition);
  if (isRestart) await manager.restart(definition);
  const waiting = {
    dataDir,
    outputFile: definition.outputFile,
    previousPid: outcome === 'already_running' ? null : previousPid,
    limitMs: UP_MS,
  };
  const { status, output: words } = await awaitDaemon(waiting, output);
  const advice = await manager.advice(definition);
  if (json)
    await print([
      JSON.stringify(
        { manager: manager.name, outcome, pid: status?.pid ?? null, problem: status === null ? (words ?? 'no response') : null, advice },
        null,
        2,
      ),
    ]);
  else if (status === null)
    await print([
      `The provider failed to start: ${words ?? 'no response'}`,
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
