/** `openHealthHistory` records figures of this coordinator's health until shutdown, and returns the repository for the admin charts. */
import { hostname } from 'node:os';
import { HealthHistoryRepository } from '../database/health-history-repository.js';
import type { Database } from '../database/tables.js';
import { errorFacts } from '../log.js';
import type { Checks } from '../telemetry/checks/check-gauges.js';
import { type HealthFigures, mergeFigures } from '../telemetry/history/health-figures.js';
import { type HealthReading, HealthRecorder } from '../telemetry/history/health-recorder.js';
import { JobCounts } from '../telemetry/history/job-counts.js';
import type { Metrics } from '../telemetry/metrics.js';
import type { InferenceServices } from './inference.js';
import type { ProviderServices } from './providers.js';
import type { StartContext } from './start-context.js';

interface HealthHistoryDeps {
  readonly database: Database;
  readonly metrics: Metrics;
  readonly providers: ProviderServices;
  readonly inference: InferenceServices;
  readonly checks: Checks;
}

export function openHealthHistory(
  context: StartContext,
  { database, metrics, providers, inference, checks }: HealthHistoryDeps,
): HealthHistoryRepository {
  const { config, now, log, disposal } = context;
  const history = new HealthHistoryRepository(database, (stored, added) =>
    JSON.stringify(mergeFigures(JSON.parse(stored) as HealthFigures, JSON.parse(added) as HealthFigures)),
  );
  // Only coordinators of a cluster have a configured id.
  const coordinator = config.cluster?.id ?? `${hostname()}:${config.port}`;
  const recorder = new HealthRecorder({
    counts: new JobCounts(metrics.registry),
    read: () => ({ ...readGauges(providers, inference), ledger: ledgerOf(checks) }),
    store: (at, figures) => history.add(coordinator, at, JSON.stringify(figures)),
    now,
    onError: (error) => log.warn({ error: errorFacts(error) }, 'the health history could not be written'),
  });
  disposal.defer(() => recorder.close());
  return history;
}

function readGauges(
  { providers }: ProviderServices,
  { runner, requestQueue, imageSupply }: InferenceServices,
): Omit<HealthReading, 'ledger'> {
  const counts: Record<string, number> = {};
  let [routable, slots, usedSlots] = [0, 0, 0];
  for (const provider of providers.snapshots()) {
    const level = provider.trust.level ?? 'none';
    counts[level] = (counts[level] ?? 0) + 1;
    if (provider.status === 'online') routable++;
    slots += provider.registration.slots;
    usedSlots += provider.usedSlots;
  }
  const waiting = requestQueue.waitingOfOwnClients(null) + imageSupply.waiting;
  return { sums: { waiting, running: runner.running, routable, slots, usedSlots }, providers: counts };
}

function ledgerOf({ ledger }: Checks): HealthReading['ledger'] {
  if (ledger.latest === null) return null;
  const { at, value } = ledger.latest;
  const { owed, held, fees, requestedWithdrawals, problems } = value;
  return { at, owed, held, fees, requestedWithdrawals, problems: problems.length };
}
