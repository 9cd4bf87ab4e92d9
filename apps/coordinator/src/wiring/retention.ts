/** Starts the hourly job that removes rows older than the retention settings, and erases closed accounts again. */
import { runOncePerPeriod } from '../database/periodic-work.js';
import { applyRetention } from '../database/privacy/retention.js';
import type { Database } from '../database/tables.js';
import type { StartContext } from './start-context.js';

const EVERY_MS = 3_600_000;

/** Runs at once and every hour. The shutdown aborts a run; finished statements stay. */
export function startRetention({ config, log, now, onWriteError, disposal }: StartContext, database: Database): void {
  const ending = new AbortController();
  let running: Promise<void> | null = null;
  const apply = async (): Promise<void> => {
    const removed = await applyRetention(database, config.retention, now(), ending.signal);
    if (Object.keys(removed).length > 0) log.info({ removed }, 'rows beyond their retention removed');
  };
  const run = (): void => {
    running ??= runOncePerPeriod(database, 'retention', EVERY_MS, apply)
      .then(() => {})
      .catch((error: unknown) => {
        if (!ending.signal.aborted) onWriteError(error);
      })
      .finally(() => {
        running = null;
      });
  };
  run();
  const timer = setInterval(run, EVERY_MS);
  timer.unref();
  disposal.defer(async () => {
    clearInterval(timer);
    ending.abort();
    await running;
  });
}
