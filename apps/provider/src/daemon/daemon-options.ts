/** `DaemonOptions`: the options of a daemon, from command line, settings file and service definition. */
import type { Logger } from 'pino';
import type { Config } from '../config/config.js';
import type { KvCacheType } from '../models/kv-cache-type.js';
import type { ModelChoice } from './open-models.js';

export interface DaemonOptions {
  /** WebSocket address of the coordinator. */
  readonly socketUrl: string;
  readonly dataDir: string;
  /** At least one. */
  readonly models: readonly ModelChoice[];
  readonly simulatedEnclave: boolean;
  /** Requests device-management enrolment, if this Mac has none. */
  readonly enrol: boolean;
  /** Address of the simulated management server for profiles; null if the owner installs profiles. */
  readonly simulatedManagement: string | null;
  /** Concurrent jobs of each model; null: planned from the memory. Fixed for image models, like `context`. */
  readonly slots: number | null;
  readonly context: number | null;
  /** For text models that support it. */
  readonly kvCacheType: KvCacheType;
  /** Folder with /sys and /proc of a simulated machine; null for this machine. */
  readonly simulatedHost: string | null;
  /** Time for running jobs when the daemon stops, in milliseconds. */
  readonly drainMs: number;
  /** Bytes reserved for the owner; null: two fifths of the memory. */
  readonly reserve: number | null;
  readonly config: Config;
  /** Reads the settings again. Throws an Error with a sentence for the owner. */
  readonly readConfig: () => Config;
  /** Values of the command line, else of these settings. */
  readonly modelSettingsOf: (config: Config) => { readonly models: readonly ModelChoice[]; readonly reserve: number | null };
  /** Whether the command line names the models, so that commands and the console cannot change them. */
  readonly modelsAreNamed: boolean;
  /** Log level from the environment, which overrides the settings; null if unset. */
  readonly fixedLogLevel: string | null;
  /** Stops the daemon, like SIGTERM. */
  readonly onStop: () => void;
  /** Stops the daemon and requests a new start from its service manager. */
  readonly onRestart: () => void;
  /** Whether a service manager runs the daemon. */
  readonly service: boolean;
  readonly log: Logger;
}
