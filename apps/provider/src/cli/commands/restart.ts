/** `restart`: stops the service after its running jobs, then starts it with the current settings and the installed program. */
import { configPath } from '../../config/data-dir.js';
import { readConfig } from '../../config/read-config.js';
import { labelOf } from '../../service/choose-manager.js';
import { foreignDaemon } from '../../service/foreign-daemon.js';
import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { refusalOutput, unitText } from '../foreign-daemon.js';
import { readServeFlags, serveOptions } from '../input/serve-options.js';
import { answeringDaemon, serviceCommand } from '../input/service-options.js';
import { print } from '../output/terminal.js';
import { launch } from './start.js';

export const restartCommand: Command = {
  name: 'restart',
  summary: 'Restarts the provider after its running requests finish.',
  usage: 'restart [--data-dir DIR] [--manager launchd|systemd|supervisor] [--json]',
  run: restart,
};

async function restart(args: readonly string[]): Promise<number> {
  const command = await serviceCommand(args);
  const { dataDir, manager } = command;
  // Checks the settings first, so that invalid settings do not stop a running daemon.
  serveOptions(readServeFlags(['--data-dir', dataDir]), readConfig(configPath(dataDir)));
  const running = await answeringDaemon(dataDir);
  const foreign = foreignDaemon(running, await manager.state(labelOf(dataDir)));
  if (foreign !== null) {
    const { pid, unit } = foreign;
    const problem =
      unit === null
        ? `The provider (process ${pid}) is not running as a service. Stop the process, then run: inference-provider start`
        : unitText('restart', unit, pid);
    await print([refusalOutput(foreign, 'not_restarted', problem, command)]);
    return EXIT.needsOwner;
  }
  return await launch(command, { previousPid: running?.pid ?? null, isRestart: true });
}
