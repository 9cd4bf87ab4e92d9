/** Address of the coordinator for a command: the option, else the settings. */
import { coordinatorAddress } from '../../account/coordinator-http.js';
import { configPath } from '../../config/data-dir.js';
import { readConfig } from '../../config/read-config.js';
import { StartupError } from '../../startup-error.js';
import { UsageError } from './owner-options.js';

/** Throws {@link UsageError}, ConfigError, or StartupError if none is set. */
export function resolveCoordinator(flag: string | boolean | undefined, dataDir: string): string {
  if (typeof flag === 'string') {
    const address = coordinatorAddress(flag);
    if (address === null) throw new UsageError('--coordinator must be an http or https address.');
    return address;
  }
  const path = configPath(dataDir);
  const { coordinator } = readConfig(path);
  const address = coordinator === undefined ? null : coordinatorAddress(coordinator);
  if (address === null) throw new StartupError(`no coordinator is set; run "inference-provider setup", or use --coordinator`);
  return address;
}

/** HTTP address of an option's text; null if absent. Throws {@link UsageError} if invalid. */
export function httpAddress(text: string | boolean | undefined): string | null {
  if (typeof text !== 'string') return null;
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^(?:https?|wss?):$/.test(url.protocol)) throw new UsageError('the coordinator must be an http or https address.');
  return text.replace(/^ws/, 'http').replace(/\/+$/, '');
}
