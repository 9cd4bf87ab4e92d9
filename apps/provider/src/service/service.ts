/** `ServiceManager`: the interface of launchd, systemd and our own supervisor, each of which runs the daemon in the background. */

export interface ServiceDefinition {
  /** Unique per data directory. */
  readonly label: string;
  readonly dataDir: string;
  /** Program first. */
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** File for the output of crashes, in the folder of the daemon's log. */
  readonly outputFile: string;
  /** Stop timeout in seconds: drain plus shutdown. */
  readonly stopSeconds: number;
}

export type ServiceState =
  | { readonly kind: 'not_running' }
  | { readonly kind: 'running'; readonly pid: number | null }
  /** Crashed; will be started again after a delay. */
  | { readonly kind: 'waiting'; readonly lastExit: string | null };

export interface ServiceManager {
  readonly name: 'launchd' | 'systemd' | 'supervisor';
  /** Starts the service. A running service is restarted only if its definition changed. */
  start(definition: ServiceDefinition): Promise<'started' | 'already_running'>;
  /** Resolves when the service has stopped. It stays stopped until `start` or `restart`. */
  stop(label: string): Promise<'stopped' | 'was_not_running'>;
  restart(definition: ServiceDefinition): Promise<void>;
  /** Also stops the service. */
  remove(label: string): Promise<void>;
  state(label: string): Promise<ServiceState>;
  /** Sentences for the owner. */
  advice(definition: ServiceDefinition): Promise<readonly string[]>;
}

/** The message is one sentence for the owner. */
export class ServiceError extends Error {
  override name = 'ServiceError';
}
