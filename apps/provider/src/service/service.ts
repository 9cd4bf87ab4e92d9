/** What a service manager does for the daemon, whichever it is: launchd, systemd, or a small supervisor of our own. */

/** What is to run, and how long it may take to end. */
export interface ServiceDefinition {
  /** Name of the service: one for each data directory. */
  readonly label: string;
  readonly dataDir: string;
  /** Program first. */
  readonly command: readonly string[];
  /** The whole environment of the daemon. */
  readonly environment: Readonly<Record<string, string>>;
  /** Takes what a crash says; the daemon's own log lies beside it. */
  readonly outputFile: string;
  /** From the signal to the end, in seconds: the drain, and what comes after it. */
  readonly stopSeconds: number;
}

export type ServiceState =
  | { readonly kind: 'not_running' }
  | { readonly kind: 'running'; readonly pid: number | null }
  /** It ended by itself and is started again after a pause. */
  | { readonly kind: 'waiting'; readonly lastExit: string | null };

export interface ServiceManager {
  readonly name: 'launchd' | 'systemd' | 'supervisor';
  /** Writes the definition, if it is another, and has the service run from now on. Does nothing where it runs already. */
  start(definition: ServiceDefinition): Promise<'started' | 'already_running'>;
  /** Resolves when it has ended. It stays ended until `start`. */
  stop(label: string): Promise<'stopped' | 'was_not_running'>;
  restart(definition: ServiceDefinition): Promise<void>;
  /** Stops it and takes away what `start` wrote. */
  remove(label: string): Promise<void>;
  state(label: string): Promise<ServiceState>;
  /** What the owner should know or do, in sentences. */
  advice(definition: ServiceDefinition): Promise<readonly string[]>;
}

/** A service manager refused or was not understood; one sentence for the owner. */
export class ServiceError extends Error {
  override name = 'ServiceError';
}
