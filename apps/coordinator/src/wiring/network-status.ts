/**
 * `openNetworkStatus` creates the services of the status page. `reportComponents` reports periodically which parts of the service
 * (`api`, `console`, `payments`) run here.
 */
import type { PaymentHealth } from '../billing/payments/payment-health.js';
import { ComponentAvailabilityRepository } from '../database/component-availability-repository.js';
import { IncidentRepository } from '../database/incident-repository.js';
import type { Database } from '../database/tables.js';
import { RepeatedTask } from '../repeated-task.js';
import { NetworkStatusService, PAYMENTS_FAILED } from '../telemetry/statistics/network-status.js';
import type { ModelAvailability } from './model-availability.js';
import type { StartContext } from './start-context.js';

/** Several reports per minute, so that no minute is missed between two timers. */
const REPORT_MS = 20_000;
const PRUNE_MS = 86_400_000;

export interface NetworkStatusServices {
  readonly service: NetworkStatusService;
  readonly incidents: IncidentRepository;
}

export function openNetworkStatus(
  { now, onWriteError: onError }: StartContext,
  { database, modelAvailability }: { readonly database: Database; readonly modelAvailability: ModelAvailability },
): NetworkStatusServices {
  const incidents = new IncidentRepository({ database, now });
  const components = new ComponentAvailabilityRepository(database);
  const { repository: models, readServed } = modelAvailability;
  return { service: new NetworkStatusService({ components, models, incidents, readServed, now, onError }), incidents };
}

interface ReportDeps {
  readonly database: Database;
  readonly hasConsole: boolean;
  /** Whether accounts can make deposits. */
  readonly hasPayments: boolean;
  readonly paymentHealth: PaymentHealth;
}

/** Reports now and periodically until shutdown. Call after the server listens. */
export async function reportComponents(context: StartContext, deps: ReportDeps): Promise<void> {
  const { now, options, onWriteError, isDraining, disposal } = context;
  const { database, hasConsole, hasPayments, paymentHealth } = deps;
  const availability = new ComponentAvailabilityRepository(database);
  const served = ['api', ...(hasConsole ? ['console'] : []), ...(hasPayments ? ['payments'] : [])];
  let prunedAt = Number.NEGATIVE_INFINITY;
  const report = async (): Promise<void> => {
    if (isDraining()) return;
    const time = now();
    await paymentHealth.reportFailure((hasFailed) => availability.report([...served, ...(hasFailed ? [PAYMENTS_FAILED] : [])], time));
    if (time - prunedAt < PRUNE_MS) return;
    await availability.prune(time);
    prunedAt = time;
  };
  const reporting = new RepeatedTask(options.availabilityCheckMs ?? REPORT_MS, report, onWriteError);
  disposal.defer(() => reporting.stop());
  await reporting.run();
}
