/** The file of settings, as it lies there and as the running daemon took it. */
import { existsSync } from 'node:fs';
import { ConfigError, readConfig } from '../config/read-config.js';
import type { DaemonStatus } from '../control/daemon-status.js';
import { type Finding, note, ok, problem } from './check.js';

export async function checkSettings(path: string, status: DaemonStatus | null): Promise<Finding[]> {
  try {
    readConfig(path);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return [problem(error.message, 'Correct it; `inference-provider serve --check` says whether it is right.')];
  }
  const waiting = status?.settings.needs_restart ?? [];
  if (waiting.length > 0) return [note(`changed, and not in force yet: ${waiting.join(', ')}`, 'Run: inference-provider restart')];
  return [ok(existsSync(path) ? `the settings in ${path} are right` : 'there is no file of settings, so that the defaults hold')];
}
