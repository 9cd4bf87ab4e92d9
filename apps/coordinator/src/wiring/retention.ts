/** `startRetention` deletes data beyond its retention period every hour, at one coordinator of the database at a time. */
import { runOncePerPeriod } from '../database/periodic-work.js';
import { applyRetention } from '../database/privacy/retention.js';
import type { Database } from '../database/tables.js';
import type { StartContext } from './start-context.js';

const INTERVAL_MS = 3_600_000;

/** The first run starts at once. A shutdown aborts a run; its completed statements remain. */
export function startRetention({ config, log, now, onWriteError, disposal }: StartContext, database: Database): void {
  const shutdown = new AbortController();
  let running: Promise<void> | null = null;
  const apply = async (): Promise<void> => {
    const removed = await applyRetention(database, config.retention, now(), shutdown.signal);
    if (Object.keys(removed).length > 0) log.info({ removed }, 'rows beyond their retention removed');
  };
  const run = (): void => {
    running ??= runOncePerPeriod(database, 'retention', INTERVAL_MS, apply)
      .then(() => {})
      .catch((error: unknown) => {
        if (!shutdown.signal.aborted) onWriteError(error);
      })
      .finally(() => {
        running = null;
      });
  };
  run();
  const timer = setInterval(run, INTERVAL_MS);
  timer.unref();
  disposal.defer(async () => {
    clearInterval(timer);
    shutdown.abort();
    await running;
  });
}
