/**
 * Wires what counts money: ledger, prices, the billing of jobs, the sweeper of forgotten holds and the pruning of old usage
 * rows. Called once by app.ts, which owns the database.
 */

import type { Ledger } from '../billing/ledger/ledger.js';
import { observedLedger, type StepListener } from '../billing/ledger/observed-ledger.js';
import { openLedger } from '../billing/ledger/sql-ledger.js';
import { UsageRetention } from '../billing/ledger/usage-retention.js';
import { microUsd } from '../billing/micro-usd.js';
import { PriceRepository } from '../billing/prices/price-repository.js';
import type { Config } from '../config/config.js';
import { pruneHistory } from '../database/ledger/prune-history.js';
import type { Database } from '../database/tables.js';
import { Billing } from '../inference/billing.js';
import { startSweeper } from '../inference/sweeper.js';
import type { JobTimings } from '../inference/timings.js';
import type { Log } from '../log.js';
import { logBilling } from '../log-billing.js';

export interface BillingOptions {
  readonly config: Config;
  readonly database: Database;
  readonly timings: JobTimings;
  /** Tests put a ledger that fails in front of the real one. */
  readonly wrapLedger: ((ledger: Ledger) => Ledger) | undefined;
  /** Hears how each step of the ledger went. */
  readonly onStep: StepListener;
  readonly log: Log;
  readonly now: () => number;
  readonly onError: (error: unknown) => void;
}

export interface BillingServices {
  readonly ledger: Ledger;
  readonly prices: PriceRepository;
  readonly billing: Billing;
  /** Releases what a crash left reserved, now and from time to time. */
  startSweeping(): Promise<void>;
  close(): Promise<void>;
}

export async function openBilling(parts: BillingOptions): Promise<BillingServices> {
  const { config, database, timings, log, now, onError } = parts;
  const { promptPerMillion, completionPerMillion, perImage } = config.defaultPrices;
  const defaults = {
    promptPerMillion: microUsd(promptPerMillion),
    completionPerMillion: microUsd(completionPerMillion),
    perImage: microUsd(perImage),
  };
  const { providerSharePercent, ownMachinesFree, earningsMaturityDays: maturityDays } = config;
  const prices = await PriceRepository.open({ database, defaults, now, onError });
  const opened = await openLedger({ database, providerSharePercent, ownMachinesFree, maturityDays, onError, now });
  const ledger = observedLedger(parts.wrapLedger?.(opened) ?? opened, parts.onStep);
  const billing = new Billing({ ledger, prices, timings, now, onProblem: (problem) => logBilling(log, problem) });
  const retention = new UsageRetention({
    days: config.usageRetentionDays,
    now,
    prune: async (before, signal) => (await pruneHistory(database, before, signal)).jobs,
    onPruned: (entries) => log.info({ entries }, 'old usage entries removed'),
    onError,
  });
  let stopSweeper = async (): Promise<void> => {};
  return {
    ledger,
    prices,
    billing,
    startSweeping: async () => {
      stopSweeper = await startSweeper({
        ledger,
        liveJobs: () => billing.liveJobs,
        now,
        onSwept: (released) => log.warn({ released }, 'holds of jobs that nobody runs were released'),
        onError,
      });
    },
    close: async () => {
      await retention.close();
      await stopSweeper();
      prices.close();
      await ledger.close();
    },
  };
}
