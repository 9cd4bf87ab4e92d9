/** `registerCheckGauges` registers the gauges of the periodic checks. A check's gauges have no value until it has succeeded once. */
import type { LedgerSummary } from '../../database/ledger/ledger-summary.js';
import type { PendingMoney } from '../../database/ledger/pending-money.js';
import type { Metrics, Reading } from '../metrics.js';
import type { PeriodicCheck } from './periodic-check.js';

export interface DatabaseReading {
  readonly isOk: boolean;
  readonly answerMs: number;
  /** Clock of the database minus clock of this process. Null for SQLite, or if the database does not answer. */
  readonly clockDifferenceMs: number | null;
}

export interface DiskReading {
  readonly freeBytes: number;
  readonly totalBytes: number;
}

export interface LogReading {
  readonly appended: number;
  /** Number of entries that the published checkpoint covers. */
  readonly published: number;
}

/** All periodic checks of this process. `wiring/checks.ts` starts them. */
export interface Checks {
  readonly database: PeriodicCheck<DatabaseReading>;
  readonly disk: PeriodicCheck<DiskReading>;
  readonly ledger: PeriodicCheck<LedgerSummary>;
  readonly pendingMoney: PeriodicCheck<PendingMoney>;
  readonly transparencyLog: PeriodicCheck<LogReading>;
}

interface ProcessState {
  readonly isDraining: () => boolean;
  readonly now: () => number;
}

export function registerCheckGauges(metrics: Metrics, checks: Checks, { isDraining, now }: ProcessState): void {
  const { database, disk, ledger, pendingMoney, transparencyLog } = checks;
  const gauge = <Value>(name: string, help: string, check: PeriodicCheck<Value>, read: (value: Value) => number | null): void =>
    metrics.gauge(name, help, [], () => {
      const value = check.latest === null ? null : read(check.latest.value);
      return value === null ? [] : [[{}, value]];
    });
  const ageSeconds = (at: number | null): number => (at === null ? 0 : Math.max(0, (now() - at) / 1000));

  gauge('ready', '1 while this process accepts requests: the database answers, and no shutdown has begun.', database, ({ isOk }) =>
    isOk && !isDraining() ? 1 : 0,
  );
  metrics.gauge('draining', '1 from the beginning of a shutdown.', [], () => [[{}, isDraining() ? 1 : 0]]);
  gauge('database_up', '1 while the database answers and has the schema of this program.', database, ({ isOk }) => (isOk ? 1 : 0));
  gauge('database_answer_seconds', 'Duration of the latest query that checked the database.', database, ({ answerMs }) => answerMs / 1000);
  gauge('database_clock_difference_seconds', "The database's clock minus this process's.", database, ({ clockDifferenceMs }) =>
    clockDifferenceMs === null ? null : clockDifferenceMs / 1000,
  );
  metrics.gauge('data_dir_bytes', 'Bytes of the file system with DATA_DIR.', ['state'], () => readingsOf(disk, diskReadings));
  gauge('ledger_problems', 'Problems found by the latest quick check of the ledger.', ledger, ({ problems }) => problems.length);
  metrics.gauge('ledger_micro_usd', 'Sums of the ledger, by kind.', ['kind'], () => readingsOf(ledger, moneyReadings));
  gauge('ledger_reservations', 'Reservations of all coordinators.', pendingMoney, ({ reservations }) => reservations);
  gauge('ledger_oldest_reservation_seconds', 'Age of the oldest reservation; 0 without one.', pendingMoney, ({ oldestReservationAt }) =>
    ageSeconds(oldestReservationAt),
  );
  gauge('transfers_unfinished', 'Withdrawals whose transfer began and has no known outcome.', pendingMoney, ({ transfers }) => transfers);
  gauge('transfers_oldest_unfinished_seconds', 'Age of the oldest of these; 0 without one.', pendingMoney, ({ oldestTransferAt }) =>
    ageSeconds(oldestTransferAt),
  );
  metrics.gauge('log_entries', 'Entries of the transparency log: all, and those in the published checkpoint.', ['state'], () =>
    readingsOf(transparencyLog, ({ appended, published }) => [
      [{ state: 'appended' }, appended],
      [{ state: 'published' }, published],
    ]),
  );
  metrics.gauge('check_last_success_timestamp_seconds', 'Time of the latest successful run of each periodic check.', ['check'], () =>
    [database, disk, ledger, pendingMoney, transparencyLog].flatMap(({ name, latest }): Reading<'check'>[] =>
      latest === null ? [] : [[{ check: name }, latest.at / 1000]],
    ),
  );
}

function readingsOf<Value, Label extends string>(
  { latest }: PeriodicCheck<Value>,
  read: (value: Value) => readonly Reading<Label>[],
): readonly Reading<Label>[] {
  return latest === null ? [] : read(latest.value);
}

function diskReadings({ freeBytes, totalBytes }: DiskReading): Reading<'state'>[] {
  return [
    [{ state: 'free' }, freeBytes],
    [{ state: 'all' }, totalBytes],
  ];
}

function moneyReadings({ owed, held, fees, requestedWithdrawals }: LedgerSummary): Reading<'kind'>[] {
  return [
    [{ kind: 'owed' }, owed],
    [{ kind: 'reserved' }, held],
    [{ kind: 'fees' }, fees],
    [{ kind: 'requested_withdrawals' }, requestedWithdrawals],
  ];
}
