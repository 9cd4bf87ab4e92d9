/** `startRetention` deletes data beyond its retention period every hour, at one coordinator of the database at a time. */
import { runOncePerPeriod } from '../database/periodic-work.js';
import { applyRetention } from '../database/privacy/retention.js';
import type { Database } from '../database/tables.js';
import { RepeatedTask } from '../repeated-task.js';
import type { StartContext } from './start-context.js';

const INTERVAL_MS = 3_600_000;

/** The first run starts at once. A shutdown aborts a running one. */
export function startRetention({ config, log, now, onWriteError, disposal }: StartContext, database: Database): void {
  const shutdown = new AbortController();
  const apply = async (): Promise<void> => {
    const removed = await applyRetention(database, config.retention, now(), shutdown.signal);
    if (Object.keys(removed).length > 0) log.info({ removed }, 'rows beyond their retention removed');
  };
  const repeated = new RepeatedTask(
    INTERVAL_MS,
    () => runOncePerPeriod(database, 'retention', INTERVAL_MS, apply),
    (error) => {
      if (!shutdown.signal.aborted) onWriteError(error);
    },
  );
  void repeated.run();
  disposal.defer(() => {
    shutdown.abort();
    return repeated.stop();
  });
}
