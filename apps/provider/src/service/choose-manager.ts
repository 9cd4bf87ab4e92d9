/** `serviceManager` chooses the service manager of this machine, and `serviceDefinition` describes the daemon's service to it. */
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync } from 'node:fs';
import { homedir, userInfo } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { dataDirOf } from '../config/data-dir.js';
import { outputFile } from '../log/log-files.js';
import { installation, launcher } from '../update/installation.js';
import { serviceEnvironment } from './environment.js';
import { Launchd } from './launchd.js';
import { OwnSupervisor } from './own-supervisor.js';
import { type RunTool, runTool } from './run-tool.js';
import { type ServiceDefinition, ServiceError, type ServiceManager } from './service.js';
import { Systemd } from './systemd.js';

const MANAGERS = ['launchd', 'systemd', 'supervisor'] as const;

/** Stop timeout: drain (`DRAIN_SECONDS` by default), the end of children, and a margin. */
const STOP_SECONDS = 25;

/**
 * Throws {@link ServiceError} for an unknown name.
 *
 * @param requested The owner's choice, which overrides the default of the machine.
 */
export async function serviceManager(dataDir: string, requested: string | undefined, run: RunTool = runTool): Promise<ServiceManager> {
  if (requested !== undefined && !MANAGERS.some((name) => name === requested)) {
    throw new ServiceError(`unknown service manager ${requested}; use one of ${MANAGERS.join(', ')}`);
  }
  const own = new OwnSupervisor(dataDir, STOP_SECONDS);
  // A service started by the supervisor must be stopped by the supervisor.
  if (requested === 'supervisor' || (requested === undefined && (await own.supervisorState()) !== null)) return own;
  const { username, uid } = userInfo();
  if (requested === 'launchd' || (requested === undefined && process.platform === 'darwin')) {
    return new Launchd({ run, uid, folder: join(homedir(), 'Library', 'LaunchAgents') });
  }
  if (requested === 'systemd' || (process.platform === 'linux' && (await hasUserSystemd(run)))) {
    return new Systemd({ run, user: username, folder: join(process.env.XDG_CONFIG_HOME || join(homedir(), '.config'), 'systemd', 'user') });
  }
  return own;
}

async function hasUserSystemd(run: RunTool): Promise<boolean> {
  if (!existsSync('/run/systemd/system') || !process.env.XDG_RUNTIME_DIR) return false;
  return (await run('systemctl', ['--user', 'show', '--property=Version'])).code === 0;
}

/** Creates the data directory and the folder of the logs. */
export function serviceDefinition(dataDir: string): ServiceDefinition {
  const output = outputFile(dataDir);
  mkdirSync(dirname(output), { recursive: true, mode: 0o700 });
  chmodSync(dataDir, 0o700);
  return {
    label: labelOf(dataDir),
    dataDir,
    command: [...program(), 'serve', '--service', '--data-dir', dataDir],
    environment: serviceEnvironment(process.env),
    outputFile: output,
    stopSeconds: STOP_SECONDS,
  };
}

/** The launcher, which stays valid after updates, or this program, with a symbolic link preserved. */
function program(): readonly string[] {
  const stable = launcher(installation());
  return stable === null ? [process.execPath, resolve(process.argv[1] ?? '')] : [stable];
}

/** Each data directory has its own service. */
export function labelOf(dataDir: string): string {
  if (dataDir === dataDirOf({}, {})) return 'inference-provider';
  return `inference-provider-${createHash('sha256').update(dataDir).digest('hex').slice(0, 12)}`;
}
