/** Interface of the service managers: launchd, systemd, and the supervisor. */

/** Program, environment and stop timeout of the service. */
export interface ServiceDefinition {
  /** Service name, unique per data directory. */
  readonly label: string;
  readonly dataDir: string;
  /** Program first. */
  readonly command: readonly string[];
  /** The whole environment of the daemon. */
  readonly environment: Readonly<Record<string, string>>;
  /** File for the output of crashes, in the folder of the daemon's log. */
  readonly outputFile: string;
  /** Stop timeout in seconds: drain plus shutdown. */
  readonly stopSeconds: number;
}

export type ServiceState =
  | { readonly kind: 'not_running' }
  | { readonly kind: 'running'; readonly pid: number | null }
  /** Crashed; restarts after a delay. */
  | { readonly kind: 'waiting'; readonly lastExit: string | null };

export interface ServiceManager {
  readonly name: 'launchd' | 'systemd' | 'supervisor';
  /** Writes a changed definition and starts the service. No effect on a running service. */
  start(definition: ServiceDefinition): Promise<'started' | 'already_running'>;
  /** Resolves when the service stopped. Stays stopped until `start`. */
  stop(label: string): Promise<'stopped' | 'was_not_running'>;
  restart(definition: ServiceDefinition): Promise<void>;
  /** Stops the service and removes its definition. */
  remove(label: string): Promise<void>;
  state(label: string): Promise<ServiceState>;
  /** Sentences for the owner. */
  advice(definition: ServiceDefinition): Promise<readonly string[]>;
}

/** A service manager refused a command or gave an unknown answer. The message is one sentence for the owner. */
export class ServiceError extends Error {
  override name = 'ServiceError';
}
