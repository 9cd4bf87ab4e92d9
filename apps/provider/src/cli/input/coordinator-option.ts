/** Which coordinator a command is about: what the command line says, else the settings. */
import { coordinatorAddress } from '../../account/coordinator-http.js';
import { configPath } from '../../config/data-dir.js';
import { readConfig } from '../../config/read-config.js';
import { StartError } from '../../startup-error.js';
import { UsageError } from './owner-options.js';

/** Its address for HTTP. Throws {@link UsageError}, ConfigError, and StartupError where nothing says which. */
export function coordinatorOf(flag: string | boolean | undefined, dataDir: string): string {
  if (typeof flag === 'string') {
    const address = coordinatorAddress(flag);
    if (address === null) throw new UsageError('--coordinator must be an http or https address.');
    return address;
  }
  const path = configPath(dataDir);
  const { coordinator } = readConfig(path);
  const address = coordinator === undefined ? null : coordinatorAddress(coordinator);
  if (address === null) throw new StartError(`no coordinator is set: run "inference-provider setup", or give --coordinator`);
  return address;
}
