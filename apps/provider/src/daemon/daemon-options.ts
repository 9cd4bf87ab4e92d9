/** `DaemonOptions`: the options of a daemon, from command line, settings file and service definition. */
import type { Logger } from 'pino';
import type { Config } from '../config/config.js';
import type { KvCacheType } from '../models/kv-cache-type.js';
import type { ModelChoice } from './open-models.js';

export interface DaemonOptions {
  /** WebSocket address of the coordinator's provider socket. */
  readonly socketUrl: string;
  readonly dataDir: string;
  /** Models to serve, at least one. */
  readonly models: readonly ModelChoice[];
  readonly simulatedEnclave: boolean;
  /** Requests a device-management profile from the coordinator, if this Mac is not enrolled. */
  readonly enrol: boolean;
  /** Address of the simulated management server for profiles; null if the owner installs profiles. */
  readonly simulatedManagement: string | null;
  /** Slots of each model except for image models; null: planned from the memory. */
  readonly slots: number | null;
  /** Context in tokens of each model except for image models; null: planned from the memory. */
  readonly context: number | null;
  /** Element type of the KV cache of text models that support it. */
  readonly kvCacheType: KvCacheType;
  /** Root folder with /sys and /proc of a simulated machine; null for this machine. */
  readonly simulatedHost: string | null;
  /** Time for running jobs when the daemon stops, in milliseconds. */
  readonly drainMs: number;
  /** Memory in bytes reserved for the owner; null: two fifths of the machine's memory. */
  readonly reserve: number | null;
  /** Settings at the start. */
  readonly config: Config;
  /** Reads the settings again. Throws an Error with a sentence for the owner. */
  readonly readConfig: () => Config;
  /** Models to serve and reserved memory, from the command line or else from these settings. */
  readonly servingOf: (config: Config) => { readonly models: readonly ModelChoice[]; readonly reserve: number | null };
  /** True if the command line names the models. Commands and the console then cannot change the selection. */
  readonly modelsAreNamed: boolean;
  /** Log level from the environment, which overrides the settings; null if unset. */
  readonly fixedLogLevel: string | null;
  /** Stops the daemon, like SIGTERM. */
  readonly onStop: () => void;
  /** Stops the daemon and requests a new start from its service manager. */
  readonly onRestart: () => void;
  /** Whether a service manager started the daemon. */
  readonly service: boolean;
  readonly log: Logger;
}
