/** `openBilling` creates the ledger, the prices and the billing of jobs. `openPayments` creates deposits and withdrawals. */
import type { Ledger } from '../billing/ledger/ledger.js';
import { startReservationSweeper, UsageRetentionJob } from '../billing/ledger/ledger-maintenance.js';
import { observedLedger } from '../billing/ledger/observed-ledger.js';
import { openLedger } from '../billing/ledger/sql-ledger.js';
import { microUsd } from '../billing/micro-usd.js';
import { Deposits } from '../billing/payments/deposits.js';
import { PaymentHealth } from '../billing/payments/payment-health.js';
import type { PaymentProcessor } from '../billing/payments/payment-processor.js';
import type { StripeSettings } from '../billing/payments/stripe-processor.js';
import { Withdrawals } from '../billing/payments/withdrawals.js';
import { PriceRepository } from '../billing/prices/price-repository.js';
import type { AccountRepository } from '../database/accounts/account-repository.js';
import { BillingDetailsRepository } from '../database/accounts/billing-details-repository.js';
import { pruneFailedRequests } from '../database/failed-request-repository.js';
import { pruneHistory } from '../database/ledger/prune-history.js';
import { repairPeriodSpending } from '../database/ledger/repair-period-spending.js';
import { PaymentRepository } from '../database/payment-repository.js';
import { runOncePerPeriod } from '../database/periodic-work.js';
import type { Database } from '../database/tables.js';
import type { BillingProblem } from '../inference/settlement/bill.js';
import { Billing } from '../inference/settlement/billing.js';
import { errorFacts, type Log } from '../log.js';
import type { Metrics } from '../telemetry/metrics.js';
import type { StartContext } from './start-context.js';

export interface BillingServices {
  readonly ledger: Ledger;
  readonly prices: PriceRepository;
  readonly billing: Billing;
  /** Releases reservations of jobs that no longer run, now and periodically. Then corrects key budgets in the background, once. */
  startLedgerMaintenance(): Promise<void>;
}

/** Reservations per second from which part of an account's balance is leased to this coordinator (decision 0047). */
const MIN_LEASED_PER_SECOND = 20;
/** Minimum interval between two deletions of old usage entries in a cluster. */
const PRUNE_HISTORY_MS = 3_600_000;

export async function openBilling(context: StartContext, database: Database, metrics: Metrics): Promise<BillingServices> {
  const { config, log, now, jobTimings, onWriteError: onError, disposal, changeHints, refresh } = context;
  const { promptPerMillion, cachedPerMillion, completionPerMillion, perImage } = config.defaultPrices;
  const defaults = {
    promptPerMillion: microUsd(promptPerMillion),
    cachedPerMillion: microUsd(cachedPerMillion),
    completionPerMillion: microUsd(completionPerMillion),
    perImage: microUsd(perImage),
  };
  const prices = await PriceRepository.open({ database, defaults, now, onError, onWrite: () => changeHints.publish('prices'), ...refresh });
  changeHints.on('prices', () => prices.changedElsewhere());
  const ledger = await openObservedLedger(context, database, metrics);
  const billing = new Billing({ ledger, prices, timings: jobTimings, now, onProblem: (problem) => logBillingProblem(log, problem) });
  const retention = startUsageRetention(context, database);
  let stopSweeper = async (): Promise<void> => {};
  let repair: Promise<void> = Promise.resolve();
  /** Corrects the period sums of API keys, which an earlier version did not maintain. */
  const repairBudgets = async (): Promise<void> => {
    const keys = await repairPeriodSpending(database, now());
    if (keys > 0) log.info({ keys }, 'spending of API keys that an earlier version counted was added to their budgets');
  };
  disposal.defer(() => ledger.close());
  disposal.defer(() => prices.close());
  disposal.defer(() => repair);
  disposal.defer(() => stopSweeper());
  disposal.defer(() => retention.close());
  return {
    ledger,
    prices,
    billing,
    startLedgerMaintenance: async () => {
      stopSweeper = await startReservationSweeper({
        ledger,
        liveJobs: () => billing.liveJobs,
        now,
        onSwept: (released) => log.warn({ released }, 'reservations of jobs that no longer run were released'),
        onError,
      });
      repair = repairBudgets().catch(onError);
    },
  };
}

/** The ledger, whose steps are counted in metrics. */
async function openObservedLedger(context: StartContext, database: Database, metrics: Metrics): Promise<Ledger> {
  const { config, options, now, onWriteError: onError, changeHints } = context;
  const { providerSharePercent, ownMachinesFree, earningsMaturityDays: maturityDays } = config;
  const sqlLedger = await openLedger({
    database,
    providerSharePercent,
    ownMachinesFree,
    maturityDays,
    separateReservations: true,
    ...(config.databaseUrl === null
      ? {}
      : {
          leases: {
            minPerSecond: MIN_LEASED_PER_SECOND,
            hints: { publish: (account) => changeHints.publish('credit', account), on: (listener) => changeHints.on('credit', listener) },
          },
        }),
    onError,
    now,
  });
  return observedLedger(options.wrapLedger?.(sqlLedger) ?? sqlLedger, (step, outcome, ms) => metrics.ledgerStep(step, outcome, ms));
}

/** Starts deleting old usage entries. */
function startUsageRetention({ config, log, now, onWriteError: onError }: StartContext, database: Database): UsageRetentionJob {
  return new UsageRetentionJob({
    days: config.usageRetentionDays,
    now,
    prune: async (before, signal) => {
      const prune = async () => {
        await pruneFailedRequests(database, before);
        return pruneHistory(database, before, signal);
      };
      const pruned = await (config.cluster === null ? prune() : runOncePerPeriod(database, 'prune history', PRUNE_HISTORY_MS, prune));
      return pruned?.jobs ?? 0;
    },
    onPruned: (entries) => log.info({ entries }, 'old usage entries removed'),
    onError,
  });
}

/** Logs a failed ledger step, or a job that was delivered and not charged. */
function logBillingProblem(log: Log, problem: BillingProblem): void {
  switch (problem.type) {
    case 'reserve_failed':
    case 'release_failed':
    case 'settle_failed':
      log.error({ job: problem.jobId, problem: problem.type, error: errorFacts(problem.error) }, 'ledger step failed');
      return;
    case 'unsettled': {
      // These facts suffice to settle the job by hand.
      const { jobId, providerId, promptTokens, completionTokens } = problem.settlement;
      const counts = { prompt_tokens: promptTokens, completion_tokens: completionTokens };
      log.error(
        { job: jobId, provider: providerId, problem: problem.type, reason: problem.reason, ...counts },
        'delivered and not settled',
      );
      return;
    }
    default:
      problem satisfies never;
  }
}

export interface PaymentServices {
  readonly payments: PaymentRepository;
  readonly billingDetails: BillingDetailsRepository;
  readonly deposits: Deposits;
  readonly withdrawals: Withdrawals;
  readonly processor: PaymentProcessor | null;
  readonly paymentHealth: PaymentHealth;
}

export async function openPayments(
  { config, now }: StartContext,
  deps: { readonly database: Database; readonly ledger: Ledger; readonly accounts: AccountRepository; readonly metrics: Metrics },
): Promise<PaymentServices> {
  const { database, ledger, accounts, metrics } = deps;
  const payments = new PaymentRepository(database);
  const paymentHealth = new PaymentHealth(() => metrics.paymentProcessorFailed());
  return {
    payments,
    billingDetails: new BillingDetailsRepository(database),
    deposits: new Deposits({ payments, ledger, accounts, now }),
    withdrawals: new Withdrawals({ payments, ledger, now }),
    processor: config.stripe === null ? null : paymentHealth.observe(await openStripe(config.stripe, now)),
    paymentHealth,
  };
}

/** Loaded on demand: the Stripe client is half of the code that a coordinator loads at its start. */
async function openStripe(settings: StripeSettings, now: () => number): Promise<PaymentProcessor> {
  const { StripeProcessor } = await import('../billing/payments/stripe-processor.js');
  return new StripeProcessor(settings, now);
}
