/** `settingsOf`: reads and validates the settings for a command. */
import { type Config, readConfig } from '../config/config.js';
import type { Environment } from '../config/environment.js';
import { SettingsError, StartupError } from '../config/startup-error.js';

/** Throws {@link SettingsError} that names the first invalid setting. run.ts returns exit code 2. */
export function settingsOf(env: Environment): Config {
  try {
    return readConfig(env);
  } catch (error) {
    if (error instanceof StartupError) throw new SettingsError(error.message, { cause: error });
    throw error;
  }
}
