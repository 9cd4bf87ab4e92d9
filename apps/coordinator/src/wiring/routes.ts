/** `registerRoutes` registers every folder of routes with the services of its handlers. */

import type { ConsoleSettings } from '@inference/formats';
import { MIN_PASSWORD_LENGTH } from '../accounts/auth.js';
import type { Config } from '../config/config.js';
import { programVersion } from '../config/program-version.js';
import { operatorNames } from '../database/accounts/account-repository.js';
import { type DatabaseState, databaseState } from '../database/connection/database-state.js';
import { dialectOf } from '../database/connection/dialect.js';
import type { HealthHistoryRepository } from '../database/health-history-repository.js';
import { ledgerSummary } from '../database/ledger/ledger-summary.js';
import { exportAccount } from '../database/privacy/export-account.js';
import type { Database } from '../database/tables.js';
import { ImageFetcher } from '../inference/request/image-fetcher.js';
import { isProviderUpgrade } from '../providers/session/provider-server.js';
import { accountRoutes } from '../routes/accounts/account-routes.js';
import { adminRoutes } from '../routes/admin/admin-routes.js';
import type { AdminHealthRoutes } from '../routes/admin/health.js';
import { billingRoutes } from '../routes/billing/billing-routes.js';
import { MIN_DEPOSIT_MICRO_USD, MIN_WITHDRAWAL_MICRO_USD } from '../routes/billing/console-billing.js';
import { deviceRoutes } from '../routes/devices/device-routes.js';
import { e2eRoutes } from '../routes/e2e/e2e-routes.js';
import { inferenceRoutes } from '../routes/inference/inference-routes.js';
import { serveUpgradesAsRequests } from '../routes/plugins/connections/unsupported-upgrades.js';
import { guards } from '../routes/plugins/guards.js';
import { providerRoutes } from '../routes/providers/provider-routes.js';
import { systemRoutes } from '../routes/system/system-routes.js';
import { logRoutes } from '../routes/transparency-log/log-routes.js';
import { PublicStatistics } from '../telemetry/statistics/public-statistics.js';
import type { TransparencyLog } from '../transparency-log/transparency-log.js';
import type { AccountServices } from './accounts.js';
import type { BillingServices } from './billing.js';
import type { Repositories } from './database.js';
import type { HttpServices } from './http.js';
import type { ImageServices } from './images.js';
import type { InferenceServices } from './inference.js';
import type { ModelAvailability } from './model-availability.js';
import type { NetworkStatusServices } from './network-status.js';
import type { ProviderServices } from './providers.js';
import type { ReleaseServices } from './releases.js';
import type { StartContext } from './start-context.js';
import type { Telemetry } from './telemetry.js';

/** Maximum response time of a ready database. */
const READY_TIMEOUT_MS = 2000;

interface RoutesDeps {
  readonly database: Database;
  readonly repositories: Repositories;
  readonly telemetry: Telemetry;
  readonly billing: BillingServices;
  readonly images: ImageServices;
  readonly providers: ProviderServices;
  readonly inference: InferenceServices;
  readonly http: HttpServices;
  readonly accounts: AccountServices;
  readonly transparencyLog: TransparencyLog;
  readonly modelAvailability: ModelAvailability;
  readonly networkStatus: NetworkStatusServices;
  readonly healthHistory: HealthHistoryRepository;
  readonly agentReleases: ReleaseServices;
}

export async function registerRoutes(context: StartContext, deps: RoutesDeps): Promise<void> {
  const { config, options, log, now, jobTimings: timings, onWriteError: onFailure, isDraining } = context;
  const { database, accounts, inference } = deps;
  const { server, consoleFiles } = deps.http;
  const { metrics, tracer } = deps.telemetry;
  const { ledger, prices } = deps.billing;
  const { receipts, deferredReceipts, imageStore } = deps.images;
  const { catalogue, quarantines, lastSeen, auditLog, prefixHashes, attempts, failedRequests } = deps.repositories;
  const { providers, providerLinks, devices } = deps.providers;
  const { runner, requestQueue, imageSupply, cluster } = inference;
  const { views } = cluster;
  const { payments } = accounts;
  const readDatabaseState = () => databaseState(database, READY_TIMEOUT_MS);

  const exportOf = async function* (accountId: string): AsyncGenerator<string> {
    await Promise.all([receipts.flush(), failedRequests.flush(), lastSeen.flush()]);
    yield* exportAccount(database, accountId, now());
  };

  await server.register(guards, accounts.consoleAccess);
  await server.register(accountRoutes, {
    ...accounts,
    ...payments,
    providerLinks,
    attempts,
    ledger,
    exportOf,
    settings: consoleSettings(config, accounts),
    log,
    now,
  });
  await server.register(inferenceRoutes, {
    runner,
    prefixHashes,
    requestQueue,
    imageSupply,
    imageStore,
    receipts,
    deferredReceipts,
    failedRequests,
    providers,
    directory: cluster.models,
    views,
    catalogue,
    prices,
    availability: deps.modelAvailability.repository,
    timings,
    metrics,
    tracer,
    log,
    now,
    catalogueOnly: config.catalogueOnly,
    imageFetcher: options.imageFetcher ?? (config.fetchImageUrls ? new ImageFetcher() : null),
    countTokensBytesPerMinute: config.countTokensBytesPerMinute,
    networkLimits: inference.cluster.limits,
    imageQueueMs: config.images.queueMs,
    publicOrigin: config.console.publicOrigin,
  });
  await server.register(billingRoutes, {
    ...payments,
    onPaymentEvent: (outcome) => metrics.paymentEvent(outcome),
    database,
    ledger,
    prices,
    providers,
    views,
    failedRequests,
    operator: config.operator,
    development: config.development,
    log,
    now,
  });
  await server.register(providerRoutes, {
    providers,
    views,
    anchor: devices.anchor,
    requestQueue,
    database,
    quarantines,
    lastSeen,
    accounts: accounts.accounts,
    ownedProviders: accounts.ownedProviders,
    providerLinks,
    attempts,
    executeOwnerCommand: cluster.executeOwnerCommand,
    releases: deps.agentReleases.releases,
    rollouts: deps.agentReleases.rollouts,
    now,
    onFailure,
  });
  await server.register(e2eRoutes, {
    registry: providers,
    anchor: devices.anchor,
    views,
    keysets: deps.repositories.keysets,
    keysetLog: deps.transparencyLog,
    now,
  });
  await server.register(deviceRoutes, { devices: devices.management, now });
  await server.register(adminRoutes, {
    metrics,
    auditLog,
    namesOf: (operators) => operatorNames(database, operators),
    incidents: deps.networkStatus.incidents,
    healthHistory: deps.healthHistory,
    rollouts: deps.agentReleases,
    health: healthSources(context, deps, readDatabaseState),
  });
  await server.register(logRoutes, { transparencyLog: deps.transparencyLog });
  await server.register(systemRoutes, {
    statistics: new PublicStatistics({ database, registry: providers, views, now }),
    statusBoard: deps.networkStatus.board,
    publicOrigin: config.console.publicOrigin,
    isDraining,
    databaseState: readDatabaseState,
    consoleFiles,
    now,
  });
  if (consoleFiles === null) log.info('no web console: CONSOLE_DIR is not set and no build lies beside this program');
  else await consoleFiles.addTo(server);
  serveUpgradesAsRequests(server.server, isProviderUpgrade);
}

/** Sources of the admin API's health report. */
function healthSources(
  { config, now, onWriteError: onFailure, isDraining }: StartContext,
  { database, http: { server }, telemetry: { metrics }, repositories, providers, inference }: RoutesDeps,
  readDatabaseState: () => Promise<DatabaseState>,
): AdminHealthRoutes {
  const { runner, requestQueue, imageSupply, cluster } = inference;
  return {
    version: programVersion(),
    startedAt: now(),
    isDraining,
    dialect: dialectOf(database),
    database: readDatabaseState,
    ledger: () => ledgerSummary(database),
    registry: providers.providers,
    coordinatorId: config.cluster?.id ?? null,
    views: cluster.views,
    quarantines: repositories.quarantines,
    queues: () => ({
      running_jobs: runner.running,
      waiting_requests: requestQueue.waitingOfOwnClients(null),
      waiting_for_images: imageSupply.waiting,
      held_request_bytes: server.requestBodies.heldBytes,
      most_held_request_bytes: config.maxHeldBytes,
    }),
    recentJobs: metrics.recentJobs,
    recentProblems: metrics.recentProblems,
    now,
    onFailure,
  };
}

/** Settings that a console page reads before anyone has signed in. */
function consoleSettings({ development, console }: Config, { payments, hasMailer }: AccountServices): ConsoleSettings {
  const hasProcessor = payments.processor !== null;
  return {
    development,
    deposits: [...(hasProcessor ? (['stripe'] as const) : []), ...(development ? (['development'] as const) : [])],
    payouts: hasProcessor,
    mail: hasMailer,
    mail_in_log: hasMailer && console.mail === null,
    email_verification_required: console.requireEmailVerification,
    min_password_length: MIN_PASSWORD_LENGTH,
    min_deposit_micro_usd: MIN_DEPOSIT_MICRO_USD,
    min_withdrawal_micro_usd: MIN_WITHDRAWAL_MICRO_USD,
  };
}
