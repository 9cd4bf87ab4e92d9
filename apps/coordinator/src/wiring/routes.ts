/** `registerRoutes` registers each folder of routes as a Fastify plugin, with the services that its handlers need. */
import type { ConsoleSettings } from '@inference/formats';
import type { FastifyPluginAsync } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
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
import { errorFacts } from '../log.js';
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
  const { server, consoleFiles } = deps.http;
  const { devices } = deps.providers;
  const readDatabaseState = () => databaseState(deps.database, READY_TIMEOUT_MS);
  await server.register(guards, deps.accounts.consoleAccess);
  await server.register(named(accountRoutes), accountRouteDeps(context, deps));
  await server.register(named(inferenceRoutes), inferenceRouteDeps(context, deps));
  await server.register(named(billingRoutes), billingRouteDeps(context, deps));
  await server.register(named(providerRoutes), providerRouteDeps(context, deps));
  await server.register(named(e2eRoutes), e2eRouteDeps(context, deps));
  await server.register(named(deviceRoutes), { devices: devices.management, now: context.now });
  await server.register(named(adminRoutes), adminRouteDeps(context, deps, readDatabaseState));
  await server.register(named(logRoutes), { transparencyLog: deps.transparencyLog });
  await server.register(named(systemRoutes), systemRouteDeps(context, deps, readDatabaseState));
  if (consoleFiles === null) context.log.info('no web console: CONSOLE_DIR is not set and no build lies beside this program');
  else await consoleFiles.addTo(server);
  serveUpgradesAsRequests(server.server, isProviderUpgrade);
}

/** Names a plugin after its function, because Fastify searches all loaded CommonJS modules for the name of an unnamed one. */
function named<Deps extends object>(plugin: FastifyPluginAsync<Deps>): FastifyPluginAsync<Deps> {
  return fastifyPlugin(plugin, { name: plugin.name, encapsulate: true });
}

function accountRouteDeps({ config, log, now }: StartContext, deps: RoutesDeps) {
  const { accounts, database } = deps;
  const { receipts } = deps.images;
  const { failedRequests, lastSeen, attemptCounters } = deps.repositories;
  /** Export of an account's data. First writes queued rows to the database. */
  const exportOf = async function* (accountId: string): AsyncGenerator<string> {
    await Promise.all([receipts.flush(), failedRequests.flush(), lastSeen.flush()]);
    yield* exportAccount(database, accountId, now());
  };
  return {
    ...accounts,
    ...accounts.payments,
    providerLinks: deps.providers.providerLinks,
    attempts: attemptCounters,
    ledger: deps.billing.ledger,
    exportOf,
    settings: consoleSettings(config, accounts),
    log,
    now,
  };
}

function inferenceRouteDeps({ config, options, log, now, jobTimings: timings }: StartContext, deps: RoutesDeps) {
  const { runner, requestQueue, imageSupply, cluster } = deps.inference;
  const { metrics, tracer } = deps.telemetry;
  const { receipts, deferredReceipts, imageStore } = deps.images;
  const { catalogue, prefixHashes, failedRequests } = deps.repositories;
  return {
    runner,
    prefixHashes,
    requestQueue,
    imageSupply,
    imageStore,
    receipts,
    deferredReceipts,
    failedRequests,
    providers: deps.providers.providers,
    directory: cluster.models,
    views: cluster.views,
    catalogue,
    prices: deps.billing.prices,
    availability: deps.modelAvailability.repository,
    timings,
    metrics,
    tracer,
    log,
    now,
    catalogueOnly: config.catalogueOnly,
    imageFetcher: options.imageFetcher ?? (config.fetchImageUrls ? new ImageFetcher() : null),
    countTokensBytesPerMinute: config.countTokensBytesPerMinute,
    networkLimits: cluster.limits,
    imageQueueMs: config.images.queueMs,
    publicOrigin: config.console.publicOrigin,
  };
}

function billingRouteDeps({ config, log, now }: StartContext, deps: RoutesDeps) {
  const { database, accounts, telemetry } = deps;
  const { ledger, prices } = deps.billing;
  return {
    ...accounts.payments,
    onPaymentEvent: (outcome: Parameters<typeof telemetry.metrics.paymentEvent>[0]) => telemetry.metrics.paymentEvent(outcome),
    database,
    ledger,
    prices,
    providers: deps.providers.providers,
    views: deps.inference.cluster.views,
    failedRequests: deps.repositories.failedRequests,
    operator: config.operator,
    development: config.development,
    log,
    now,
  };
}

function providerRouteDeps({ now, onWriteError: onFailure }: StartContext, deps: RoutesDeps) {
  const { database, accounts } = deps;
  const { requestQueue, cluster } = deps.inference;
  const { providers, providerLinks, devices } = deps.providers;
  const { quarantines, lastSeen, attemptCounters } = deps.repositories;
  return {
    providers,
    views: cluster.views,
    anchor: devices.anchor,
    requestQueue,
    database,
    quarantines,
    lastSeen,
    accounts: accounts.accounts,
    ownedProviders: accounts.ownedProviders,
    providerLinks,
    attempts: attemptCounters,
    executeOwnerCommand: cluster.executeOwnerCommand,
    releases: deps.agentReleases.releases,
    rollouts: deps.agentReleases.rollouts,
    now,
    onFailure,
  };
}

function e2eRouteDeps({ log, now }: StartContext, deps: RoutesDeps) {
  return {
    registry: deps.providers.providers,
    anchor: deps.providers.devices.anchor,
    views: deps.inference.cluster.views,
    keysets: deps.repositories.keysets,
    keysetLog: deps.transparencyLog,
    onLogError: (error: unknown) =>
      log.error({ error: errorFacts(error) }, "a provider's key could not be appended to the transparency log"),
    now,
  };
}

function adminRouteDeps(context: StartContext, deps: RoutesDeps, readDatabaseState: () => Promise<DatabaseState>) {
  return {
    metrics: deps.telemetry.metrics,
    auditLog: deps.repositories.auditLog,
    namesOf: (operators: Parameters<typeof operatorNames>[1]) => operatorNames(deps.database, operators),
    incidents: deps.networkStatus.incidents,
    healthHistory: deps.healthHistory,
    rollouts: deps.agentReleases,
    health: healthSources(context, deps, readDatabaseState),
  };
}

function systemRouteDeps(
  { config, now, isDraining }: StartContext,
  { database, providers: { providers: registry }, inference, networkStatus, http }: RoutesDeps,
  readDatabaseState: () => Promise<DatabaseState>,
) {
  return {
    statistics: new PublicStatistics({ database, registry, views: inference.cluster.views, now }),
    statusService: networkStatus.service,
    publicOrigin: config.console.publicOrigin,
    isDraining,
    databaseState: readDatabaseState,
    consoleFiles: http.consoleFiles,
    now,
  };
}

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

/** Settings that console pages need before sign-in. */
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
