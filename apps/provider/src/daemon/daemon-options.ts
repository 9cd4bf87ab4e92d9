/** What a daemon is started with: what its command line, its settings and its service say. */
import type { Logger } from 'pino';
import type { Config } from '../config/config.js';
import type { ModelChoice } from './open-models.js';

export interface DaemonOptions {
  /** WebSocket address of the coordinator's provider socket. */
  readonly socketUrl: string;
  readonly dataDir: string;
  /** At least one. */
  readonly models: readonly ModelChoice[];
  readonly simulatedEnclave: boolean;
  /** Asks for the device-management enrolment of this Mac. */
  readonly enrol: boolean;
  /** Simulated management server on whose Mac profiles are installed; null: the owner installs them. */
  readonly simulatedManagement: string | null;
  readonly slots: number | null;
  readonly context: number | null;
  /** Folder with the /sys and /proc of a simulated machine; null: this machine's own. */
  readonly simulatedHost: string | null;
  /** Time that running jobs get when the daemon stops, in milliseconds. */
  readonly drainMs: number;
  /** Bytes of memory that models leave to the owner; null: two fifths. */
  readonly reserve: number | null;
  /** The file of settings as it was read at the start. */
  readonly config: Config;
  /** Reads it again. Throws an Error whose message is for the owner. */
  readonly readConfig: () => Config;
  /** The models that such settings want to be served, and the bytes that they leave to other things. */
  readonly servingOf: (config: Config) => { readonly models: readonly ModelChoice[]; readonly reserve: number | null };
  /** They stand on the command line: the library does not say which they are. */
  readonly modelsAreNamed: boolean;
  /** Set: its words stand in the environment, and go before the file. */
  readonly fixedLogLevel: string | null;
  /** Ends the daemon as a signal does. */
  readonly onStop: () => void;
  /** Ends it, too, and has whoever keeps it start it again. */
  readonly onRestart: () => void;
  /** A service manager keeps it. */
  readonly service: boolean;
  readonly log: Logger;
}
