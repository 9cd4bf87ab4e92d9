/** `openChecks` starts periodic checks of database, disk, ledger, pending money and transparency log, and registers their gauges. */
import { statfs } from 'node:fs/promises';
import { sql } from 'kysely';
import { databaseTime } from '../database/connection/database-clock.js';
import { databaseState } from '../database/connection/database-state.js';
import { dialectOf } from '../database/connection/dialect.js';
import { ledgerSummary } from '../database/ledger/ledger-summary.js';
import { pendingMoney } from '../database/ledger/pending-money.js';
import type { Database } from '../database/tables.js';
import { errorFacts } from '../log.js';
import { type Checks, type DatabaseReading, type DiskReading, registerCheckGauges } from '../telemetry/checks/check-gauges.js';
import { PeriodicCheck } from '../telemetry/checks/periodic-check.js';
import { registerBacklogGauges } from '../telemetry/gauges.js';
import type { Metrics } from '../telemetry/metrics.js';
import type { TransparencyLog } from '../transparency-log/transparency-log.js';
import type { Repositories } from './database.js';
import type { ImageServices } from './images.js';
import type { StartContext } from './start-context.js';

/** Time without a response after which the database counts as unreachable. */
const DATABASE_TIMEOUT_MS = 2000;
const DATABASE_INTERVAL_MS = 15_000;
const DEFAULT_INTERVAL_MS = 60_000;
/** The check of the ledger reads every balance, so it is rare. */
const LEDGER_INTERVAL_MS = 300_000;

interface ChecksDeps {
  readonly database: Database;
  readonly repositories: Repositories;
  readonly images: ImageServices;
  readonly transparencyLog: TransparencyLog;
  readonly metrics: Metrics;
}

export function openChecks(context: StartContext, { database, repositories, images, transparencyLog, metrics }: ChecksDeps): Checks {
  const { config, now, log, isDraining, disposal } = context;
  const start = <Value>(name: string, everyMs: number, read: () => Promise<Value>): PeriodicCheck<Value> => {
    const onError = (error: unknown): void => log.warn({ check: name, error: errorFacts(error) }, 'periodic check failed');
    const check = new PeriodicCheck({ name, everyMs, read, now, onError });
    disposal.defer(() => check.close());
    return check;
  };
  const checks: Checks = {
    database: start('database', DATABASE_INTERVAL_MS, () => readDatabase(database)),
    disk: start('disk', DEFAULT_INTERVAL_MS, () => readDisk(config.dataDir)),
    ledger: start('ledger', LEDGER_INTERVAL_MS, () => ledgerSummary(database)),
    pendingMoney: start('pending_money', DEFAULT_INTERVAL_MS, () => pendingMoney(database)),
    transparencyLog: start('transparency_log', DEFAULT_INTERVAL_MS, () => transparencyLog.sizes()),
  };
  registerCheckGauges(metrics, checks, { isDraining, now });
  const { lastSeen, reputations, failedRequests } = repositories;
  registerBacklogGauges(metrics, { last_seen: lastSeen, reputations, failed_requests: failedRequests, receipts: images.receipts });
  return checks;
}

async function readDatabase(database: Database): Promise<DatabaseReading> {
  const startedAt = performance.now();
  const isOk = (await databaseState(database, DATABASE_TIMEOUT_MS)) === 'ok';
  const answerMs = performance.now() - startedAt;
  return { isOk, answerMs, clockDifferenceMs: isOk && dialectOf(database) === 'postgres' ? await readClockDifference(database) : null };
}

/** Clock of the database minus clock of this process, in milliseconds. Assumes that query and result travel equally long. */
async function readClockDifference(database: Database): Promise<number> {
  const before = Date.now();
  const { rows } = await sql<{ at: number | string }>`select ${databaseTime(database)} as at`.execute(database);
  return Number(rows[0]?.at) - (before + Date.now()) / 2;
}

async function readDisk(directory: string): Promise<DiskReading> {
  const { bavail, blocks, bsize } = await statfs(directory);
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
}
