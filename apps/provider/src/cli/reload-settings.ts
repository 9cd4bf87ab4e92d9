/** `reloadSettings` makes a running daemon read `config.toml` again. Used after a command has changed the file. */
import { ControlError, requestDaemon } from '../control/control-client.js';

const ANSWER_MS = 6_000;

export interface SettingsReload {
  readonly isRunning: boolean;
  /** Why a running daemon did not read the settings; null if it did, or if none runs. */
  readonly problem: string | null;
}

export async function reloadSettings(dataDir: string): Promise<SettingsReload> {
  const isAnything = (value: unknown): value is unknown => value !== undefined;
  try {
    await requestDaemon(dataDir, { path: '/v1/reload', body: {} }, isAnything, ANSWER_MS);
    return { isRunning: true, problem: null };
  } catch (error) {
    if (!(error instanceof ControlError)) throw error;
    return error.problem === 'not_running' ? { isRunning: false, problem: null } : { isRunning: true, problem: error.message };
  }
}
