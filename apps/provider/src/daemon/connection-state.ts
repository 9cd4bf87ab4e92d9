/** `ConnectionState`: state of the connection to the coordinator, and counts of ended jobs since the daemon started. For its status. */
import type { DaemonStatus } from '../control/daemon-status.js';

export class ConnectionState {
  #token: string | null = null;
  #connection: DaemonStatus['connection'] = { state: 'not_connected', since: Date.now(), problem: null, retry_at: null };
  readonly #jobs = { completed: 0, failed: 0, cancelled: 0 };
  /** This machine's clock minus the coordinator's, in milliseconds. Null before the first session. */
  clockSkewMs: number | null = null;

  get connection(): DaemonStatus['connection'] {
    return this.#connection;
  }

  /** Token of the current session; null without a session. */
  get token(): string | null {
    return this.#token;
  }

  get jobs(): DaemonStatus['jobs'] {
    return { ...this.#jobs };
  }

  registered(token: string | null): void {
    this.#token = token;
    this.#connection = { state: 'connected', since: Date.now(), problem: null, retry_at: null };
  }

  ended(problem: string, retryInMs: number): void {
    this.#token = null;
    const since = this.#connection.state === 'connected' ? Date.now() : this.#connection.since;
    this.#connection = { state: 'not_connected', since, problem, retry_at: Date.now() + Math.round(retryInMs) };
  }

  countJob(end: keyof DaemonStatus['jobs']): void {
    this.#jobs[end]++;
  }
}
