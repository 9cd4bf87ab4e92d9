/** `StartContext`: values that the functions of `wiring/` share, and the stack of resources to close at shutdown. */
import { join } from 'node:path';
import type { Config } from '../config/config.js';
import { ChangeHints } from '../database/change-hints.js';
import { JOB_TIMINGS, type JobTimings } from '../inference/job-timings.js';
import { errorFacts, type Log } from '../log.js';
import type { AppOptions } from './app-options.js';

export interface StartContext {
  readonly options: AppOptions;
  readonly config: Config;
  readonly log: Log;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly random: () => number;
  readonly jobTimings: JobTimings;
  /** Directory for the files of this coordinator. */
  readonly directory: string;
  readonly disposal: DisposalStack;
  /** Notifications about changed database rows, to and from the other coordinators of a cluster. */
  readonly changeHints: ChangeHints;
  /** Logs a failed database write that no request waits for. */
  readonly onWriteError: (error: unknown) => void;
  /** Aborted when the shutdown begins. */
  readonly draining: AbortController;
  readonly isDraining: () => boolean;
  /** Aborted when new requests are refused: at the shutdown, or in a cluster after load balancers had time to notice. */
  readonly refusing: AbortController;
  /** Interval at which repositories read their rows again. Empty for the default, which only tests change. */
  readonly refresh: { readonly refreshMs?: number };
}

export function createStartContext(options: AppOptions): StartContext {
  const { config, log, now = Date.now, random = Math.random } = options;
  const draining = new AbortController();
  const refusing = new AbortController();
  return {
    options,
    config,
    log,
    now,
    random,
    jobTimings: { ...JOB_TIMINGS, ...options.jobTimings },
    directory: join(config.dataDir, 'coordinator'),
    disposal: new DisposalStack(),
    changeHints: new ChangeHints(),
    onWriteError: (error) => log.error({ error: errorFacts(error) }, 'database write failed'),
    draining,
    refresh: options.refreshMs === undefined ? {} : { refreshMs: options.refreshMs },
    isDraining: () => draining.signal.aborted,
    refusing,
  };
}

/** Closes resources in reverse order of their registration, as `AsyncDisposableStack` does (Node.js 24). */
class DisposalStack {
  readonly #closers: (() => unknown)[] = [];

  defer(close: () => unknown): void {
    this.#closers.push(close);
  }

  /** Runs all functions, even if some reject. Rejects with their error, or with an `AggregateError` of several. */
  async close(): Promise<void> {
    const errors: unknown[] = [];
    for (let close = this.#closers.pop(); close !== undefined; close = this.#closers.pop()) {
      try {
        await close();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 1) throw new AggregateError(errors, 'several resources could not be closed');
    if (errors.length === 1) throw errors[0];
  }
}
