/** The time zone that the owner set, for what is said in times of day. */
import { configPath } from './data-dir.js';
import { ConfigError, readConfig } from './read-config.js';

/** Undefined where none is set. Settings that are broken are told by `status` and `doctor`, and keep no other command from working. */
export function settingsTimeZone(dataDir: string): string | undefined {
  try {
    return readConfig(configPath(dataDir)).availability.time_zone;
  } catch (error) {
    if (error instanceof ConfigError) return undefined;
    throw error;
  }
}
