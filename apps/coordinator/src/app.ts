/**
 * Wires the coordinator together and takes it apart again. The only file that knows all the parts; everything it makes, it
 * also closes.
 */
import { join } from 'node:path';
import { ensureAuthSecret } from './accounts/auth-secret.js';
import { ProviderLinks } from './accounts/provider-links.js';
import type { Ledger } from './billing/ledger/ledger.js';
import { ensureDevelopmentDeposit } from './billing/payments/development-deposit.js';
import type { PriceRepository } from './billing/prices/price-repository.js';
import type { Config } from './config/config.js';
import { errorReason, StartupError } from './config/startup-error.js';
import { ensureAdminKey } from './database/accounts/admin-key.js';
import { ApiKeyCache } from './database/accounts/api-key-cache.js';
import { findKey, hashKey } from './database/accounts/api-key-repository.js';
import { type DevelopmentKeys, ensureDevelopmentKeys } from './database/accounts/development-keys.js';
import { OperatorAuditLog } from './database/accounts/operator-audit-log.js';
import { operatorNames } from './database/accounts/operator-names.js';
import { databaseState } from './database/connection/database-state.js';
import { dialectOf } from './database/connection/dialect.js';
import { openDatabase } from './database/connection/open-database.js';
import { ledgerSummary } from './database/ledger/ledger-summary.js';
import { CatalogueRepository } from './database/providers/catalogue-repository.js';
import { LastSeenRepository } from './database/providers/last-seen-repository.js';
import { modelsOfLatestJobs } from './database/providers/latest-models.js';
import type { MachineCodeRepository } from './database/providers/machine-code-repository.js';
import { QuarantineRepository } from './database/providers/quarantine-repository.js';
import { ReceiptRepository } from './database/providers/receipt-repository.js';
import { ReputationRepository } from './database/providers/reputation-repository.js';
import { sharedSecret } from './database/secret-repository.js';
import type { Database } from './database/tables.js';
import type { ScheduleRules } from './devices/command-policy.js';
import type { DeviceManagement } from './devices/device-management.js';
import { HeldReceipts } from './images/held-receipts.js';
import { ImageStore } from './images/image-store.js';
import { CACHE_SCOPE_SECRET, CacheScopes } from './inference/cache-scopes.js';
import { CountTokensLimit } from './inference/count-tokens-limit.js';
import { ImageSupply } from './inference/image-supply.js';
import { JobRunner } from './inference/job-runner.js';
import { PrefixHashes } from './inference/prefix-hashes.js';
import { Encapsulations } from './inference/sealing/encapsulations.js';
import { JOB_TIMINGS, type JobTimings, MAX_WAITING_PER_MODEL } from './inference/timings.js';
import { WaitingRoom } from './inference/waiting-room.js';
import { errorFacts, type Log } from './log.js';
import { RECENTLY_SEEN_MS, RecentlySeenModels } from './providers/placement/recently-seen-models.js';
import { ProviderRegistry } from './providers/provider-registry.js';
import { evaluateOffers } from './providers/session/offer-policy.js';
import { isProviderUpgrade, openProviderServer } from './providers/session/provider-server.js';
import type { OnlineSession } from './providers/session/provider-session.js';
import { SESSION_TIMINGS, type SessionTimings } from './providers/session/session-timings.js';
import { addAdminHealth } from './routes/admin/health.js';
import { addMetrics } from './routes/admin/metrics.js';
import { addPayments } from './routes/billing/payments.js';
import { addPrices } from './routes/billing/prices.js';
import { addCatalogue } from './routes/inference/catalogue.js';
import { addInference } from './routes/inference/endpoints.js';
import { addImageFiles } from './routes/inference/image-files.js';
import { addImages } from './routes/inference/image-generations.js';
import { addModels } from './routes/inference/models.js';
import { addReceipts } from './routes/inference/receipts.js';
import { requireApiKey } from './routes/plugins/api-key-auth.js';
import { ResponseDrain } from './routes/plugins/connections/response-drain.js';
import { serveUpgradesAsRequests } from './routes/plugins/connections/unsupported-upgrades.js';
import { FundedAccounts } from './routes/plugins/funded-accounts.js';
import { addAuditLogRoutes, recordOperatorActions } from './routes/plugins/operator-audit-log.js';
import { createRateLimits } from './routes/plugins/rate-limits.js';
import { RequestBodies } from './routes/plugins/request-bodies.js';
import { createHttpServer } from './routes/plugins/server.js';
import { addAdminProviders } from './routes/providers/admin-provider.js';
import { addOperations } from './routes/providers/admin-providers.js';
import { AgentReleaseFile } from './routes/providers/agent-release-file.js';
import { addAgentReleases } from './routes/providers/agent-releases.js';
import { addAttestation } from './routes/providers/attestation.js';
import { addProviderMe, providerStatusOf } from './routes/providers/own-status.js';
import { openConsoleFiles } from './routes/system/console-files.js';
import { addHealth } from './routes/system/health.js';
import { addOpenApi, programVersion } from './routes/system/openapi.js';
import { addStatistics } from './routes/system/statistics.js';
import { readImages } from './telemetry/image-gauges.js';
import { Metrics } from './telemetry/metrics.js';
import { type MetricsServer, startMetricsServer } from './telemetry/metrics-server.js';
import { EndedSessions, readBodies, readFleet } from './telemetry/provider-gauges.js';
import { PublicStatistics } from './telemetry/statistics/public-statistics.js';
import { openTracing } from './telemetry/tracing.js';
import { openAccounts } from './wiring/accounts.js';
import { openBilling } from './wiring/billing.js';
import { openDevices } from './wiring/devices.js';
import { recordLastSeen } from './wiring/last-seen.js';
import { logProviderEvent } from './wiring/provider-events.js';

export interface AppOptions {
  readonly config: Config;
  readonly log: Log;
  /** Tests shorten these. */
  readonly providerTimings?: Partial<SessionTimings>;
  readonly jobTimings?: Partial<JobTimings>;
  readonly maxWaitingPerModel?: number;
  /** Longest time a client may take to send its request, in milliseconds. */
  readonly requestMs?: number;
  /** Time in which some of a request's body must arrive, in milliseconds. */
  readonly bodyWindowMs?: number;
  /** Tests put a ledger that fails in front of the real one. */
  readonly wrapLedger?: (ledger: Ledger) => Ledger;
  readonly now?: () => number;
  readonly random?: () => number;
  /** Longest wait for another process that holds the lock of the database file, in milliseconds. */
  readonly databaseBusyMs?: number;
  readonly deviceRules?: Partial<ScheduleRules>;
  readonly deviceIntervalMs?: number;
  /** Pause between two questions of an agent whose owner has not approved its code yet. */
  readonly linkPollMs?: number;
}

export interface App {
  /** `http://host:port` */
  readonly address: string;
  readonly developmentKeys: DevelopmentKeys | null;
  readonly providers: ProviderRegistry;
  readonly devices: DeviceManagement;
  readonly apiKeyCache: ApiKeyCache;
  readonly ledger: Ledger;
  readonly prices: PriceRepository;
  readonly database: Database;
  readonly machineCodes: MachineCodeRepository;
  /** Where metrics are served by themselves; null: nowhere. */
  readonly metricsPort: number | null;
  /**
   * Refuses new requests, lets running ones end within `graceMs` or until `hurry`, says goodbye to providers and closes
   * everything. It listens until the running jobs have ended, so that clients are told when to come back.
   */
  close(graceMs?: number, hurry?: AbortSignal): Promise<void>;
}

/** Of the code in image addresses. */
const IMAGE_ADDRESS_SECRET = 'image-address';
/** A database that takes longer to answer is not ready. */
const READY_MS = 2000;
/** Connections that wait to be taken in: thousands of clients come back at once after a pause. The system may allow fewer. */
const BACKLOG = 4096;
/** Last answers and closing handshakes may take this long after it. */
const FLUSH_MS = 750;

/** Starts a coordinator. Throws StartupError with a sentence for the operator. */
export async function startApp(options: AppOptions): Promise<App> {
  const { config, log, now = Date.now, random = Math.random } = options;
  const tracing = await openTracing(config.tracing, (error) => log.warn({ error: errorFacts(error) }, 'traces were not sent'));
  const directory = join(config.dataDir, 'coordinator');
  const database = await openDatabase(
    config.databaseUrl === null
      ? { file: join(directory, 'coordinator.db'), ...(options.databaseBusyMs === undefined ? {} : { busyMs: options.databaseBusyMs }) }
      : { url: config.databaseUrl, onConnectionLost: (error) => log.warn({ error: errorFacts(error) }, 'database connection lost') },
  );
  const onWriteError = (error: unknown): void => log.error({ error: errorFacts(error) }, 'database write failed');
  const metrics = new Metrics(now);
  const jobTimings = { ...JOB_TIMINGS, ...options.jobTimings };
  const { authSecret, cacheScopes, earlier, money, catalogue, reputations, holds, images } = await orDestroy(database, async () => ({
    images: await ImageStore.open({
      directory: join(directory, 'images'),
      maxBytes: config.images.storeBytes,
      sharePercent: config.imageSharePercent,
      lifetimeMs: config.images.urlMs,
      codeKey: await sharedSecret(database, IMAGE_ADDRESS_SECRET),
      now,
      onError: (error) => log.error({ error: errorFacts(error) }, 'image store failed'),
    }),
    earlier: await modelsOfLatestJobs(database, now() - RECENTLY_SEEN_MS),
    catalogue: await CatalogueRepository.open({ database, now, onError: onWriteError }),
    reputations: await ReputationRepository.open({ database, now, onWriteError }),
    holds: await QuarantineRepository.open({ database, now, onError: onWriteError }),
    cacheScopes: new CacheScopes(await sharedSecret(database, CACHE_SCOPE_SECRET)),
    authSecret: config.console.authSecret ?? ensureAuthSecret(join(directory, 'auth-secret')),
    money: await openBilling({
      config,
      database,
      timings: jobTimings,
      wrapLedger: options.wrapLedger,
      onStep: (step, outcome, ms) => metrics.ledgerStep(step, outcome, ms),
      log,
      now,
      onError: onWriteError,
    }),
  }));
  const { ledger, prices, billing } = money;
  const apiKeyCache = new ApiKeyCache({ database, now, onWriteError });
  const receipts = new ReceiptRepository({ database, onWriteError });
  const heldReceipts = new HeldReceipts(receipts, now);
  const lastSeen = new LastSeenRepository({ database, onWriteError });
  let address = '';
  const devices = openDevices({
    config,
    database,
    now,
    log,
    address: () => address,
    ...(options.deviceRules === undefined ? {} : { rules: options.deviceRules }),
    ...(options.deviceIntervalMs === undefined ? {} : { tickMs: options.deviceIntervalMs }),
  });
  const endedSessions = new EndedSessions();
  const machineLinks = new ProviderLinks({ database, now, onUnlink: (providerId) => providers.unlinked(providerId) });
  const providers: ProviderRegistry = new ProviderRegistry({
    rules: {
      timings: { ...SESSION_TIMINGS, challengeIntervalMs: config.challengeIntervalMs, ...options.providerTimings },
      allowSimulatedEnclave: config.allowSimulatedEnclave,
      minTrustLevel: config.minTrustLevel,
      anchor: devices.anchor,
      now,
      enrolments: devices.enrol,
      links: (providerId, token) => machineLinks.link(providerId, token),
      evaluateOffers: (offers) => evaluateOffers(offers, { catalogue: catalogue.entries, onlyCatalogued: config.catalogueOnly }),
    },
    random,
    reputations,
    holdOf: (providerId) => holds.of(providerId),
    onEvent: (event) => {
      logProviderEvent(log, event);
      metrics.fleetEvent(event);
      if (event.type === 'left') endedSessions.add(event.session.counters);
      devices.onProviderEvent(event);
      recordLastSeen(lastSeen, event, now());
    },
  });
  devices.notifyProviders(providers);
  catalogue.onChange = () => providers.reevaluateOffers();
  reputations.onChange = (providerId, reputation) => providers.reputations.adopt(providerId, reputation);
  holds.onChange = (providerIds) => providers.quarantinesChanged(providerIds);
  const hardwareOnly = new Set(config.hardwareOnlyModels);
  const trustFloor = (model: string) => (hardwareOnly.has('*') || hardwareOnly.has(model) ? 'hardware' : null);
  const waitingRoom = new WaitingRoom(providers, options.maxWaitingPerModel ?? MAX_WAITING_PER_MODEL, trustFloor);
  const expected = new RecentlySeenModels({ fleet: providers, catalogue, earlier, now });
  const imageSupply = new ImageSupply(providers, expected);
  const encapsulations = new Encapsulations({
    onError: (error) => log.warn({ error: errorFacts(error) }, 'the sealing thread has ended; jobs are sealed without it'),
  });
  const runner = new JobRunner({
    fleet: providers,
    waitingRoom,
    expected,
    imageSupply,
    billing,
    timings: jobTimings,
    hedgePercent: config.hedgePercent,
    trustFloor,
    cacheScopes,
    encapsulations,
    now,
    observer: metrics,
    onKeepFailed: (error) => log.error({ error: errorFacts(error) }, 'images could not be stored'),
  });
  readFleet(metrics, providers, waitingRoom, endedSessions);
  readImages(metrics, images, imageSupply);
  let isDraining = false;
  const { maxRequestBytes, trustedProxies } = config;
  const { requestMs } = options;
  const funded = new FundedAccounts(ledger);
  const bodies = new RequestBodies({
    maxBytes: config.maxHeldBytes,
    maxRequestBytes,
    isFunded: (accountId) => funded.isFunded(accountId),
    ...(options.bodyWindowMs === undefined ? {} : { windowMs: options.bodyWindowMs }),
  });
  readBodies(metrics, bodies);
  const consoleFiles = await orDestroy(database, async () => openConsoleFiles(config.consoleDir));
  const sendNotFoundPage = consoleFiles?.sendNotFoundPage;
  const http = {
    maxRequestBytes,
    bodies,
    trustedProxies,
    log,
    cors: config.cors,
    isDraining: () => isDraining,
    ...(sendNotFoundPage && { sendNotFoundPage }),
  };
  const server = createHttpServer({ ...http, ...(requestMs === undefined ? {} : { requestMs }) });
  const underway = new ResponseDrain(jobTimings.clientDrainMs);
  underway.attach(server.server);
  const limits = await createRateLimits(server, config.rateLimits);
  const keys = { apiKeyCache, limits, now, onFailure: onWriteError };
  const trail = new OperatorAuditLog({ database, now });
  recordOperatorActions(server, trail, onWriteError);
  const statusSources = { fleet: providers, waitingRoom, database, now, onFailure: onWriteError };
  const statusOf = (session: OnlineSession) => providerStatusOf(statusSources, session);
  const people = await openAccounts({
    server,
    config,
    authSecret,
    database,
    ledger,
    fleet: providers,
    machineLinks,
    lastSeen,
    statusOf,
    linkPollMs: options.linkPollMs,
    keys,
    metrics,
    log,
    now,
  });
  const prefixHashes = new PrefixHashes();
  const inference = { runner, receipts, timings: jobTimings, prefixHashes, log, now, metrics, tracer: tracing.tracer };
  const countTokensLimit = new CountTokensLimit({ bytesPerMinute: config.countTokensBytesPerMinute });
  addInference(server, requireApiKey(keys, 'api'), { ...inference, countTokensLimit });
  addImages(server, requireApiKey(keys, 'api'), {
    ...inference,
    store: images,
    heldReceipts,
    supply: imageSupply,
    queueMs: config.images.queueMs,
    publicOrigin: config.console.publicOrigin,
  });
  addImageFiles(server, limits.publicRoutes, { store: images, metrics, now });
  addModels(server, people.accountGuard, providers, waitingRoom);
  addReceipts(server, people.accountGuard, heldReceipts);
  addPayments(server, people.accountGuard, { database, ledger });
  addPrices(server, people.adminGuard, { prices, fleet: providers, now });
  addCatalogue(server, people.adminGuard, { catalogue, prices, exclusive: config.catalogueOnly });
  addStatistics(server, new PublicStatistics({ database, fleet: providers, now }));
  addAttestation(server, providers);
  addProviderMe(server, { ...statusSources, limits });
  addAgentReleases(
    server,
    new AgentReleaseFile(config.agentReleases, (problem) =>
      log.error({ path: config.agentReleases, problem }, 'the file of releases cannot be used'),
    ),
  );
  addOpenApi(server);
  addOperations(server, people.adminGuard, { fleet: providers, waitingRoom, holds, consoleFiles });
  addAdminProviders(server, people.adminGuard, {
    fleet: providers,
    holds,
    lastSeen,
    statusOf,
    machines: people.machines,
    accounts: people.accounts,
  });
  addAuditLogRoutes(server, people.adminGuard, { trail, namesOf: (operators) => operatorNames(database, operators) });
  addAdminHealth(server, people.adminGuard, {
    version: programVersion(),
    startedAt: now(),
    isDraining: () => isDraining,
    dialect: dialectOf(database),
    database: () => databaseState(database, READY_MS),
    ledger: () => ledgerSummary(database),
    fleet: providers,
    holds,
    queues: () => ({
      running_jobs: runner.running,
      waiting_requests: waitingRoom.waiting,
      waiting_for_images: imageSupply.waiting,
      held_request_bytes: bodies.heldBytes,
      most_held_request_bytes: config.maxHeldBytes,
    }),
    recentJobs: metrics.recentJobs,
    recentProblems: metrics.recentProblems,
    now,
    onFailure: onWriteError,
  });
  addHealth(server, { isDraining: () => isDraining, database: () => databaseState(database, READY_MS), now });
  addMetrics(server, people.adminGuard, metrics);
  devices.addRoutes(server, people.adminGuard, limits);
  if (consoleFiles === null) log.info('no web console: it is not built beside this program, and CONSOLE_DIR names none');
  else await consoleFiles.addTo(server);
  serveUpgradesAsRequests(server.server, isProviderUpgrade);
  const closeGate = openProviderServer(server.server, providers, trustedProxies);

  let metricsServer: MetricsServer | null = null;
  const closeStores = async (): Promise<void> => {
    await metricsServer?.close();
    providers.close();
    closeGate();
    await people.close();
    await devices.management.close();
    expected.close();
    catalogue.close();
    holds.close();
    await lastSeen.close();
    await reputations.close();
    await apiKeyCache.close();
    images.close();
    await encapsulations.close();
    heldReceipts.close();
    await receipts.close();
    await money.close();
    await tracing.close(FLUSH_MS);
    await database.destroy();
  };

  const close = async (graceMs = config.drainMs, hurry?: AbortSignal): Promise<void> => {
    isDraining = true;
    providers.drain(() => runner.wanted());
    waitingRoom.drain();
    imageSupply.close();
    // A job is over when its answer is complete; its client may still be taking it.
    const allTaken = runner.whenIdle().then(() => underway.whenDrained());
    await Promise.race([allTaken, pause(graceMs, hurry)]);
    const closed = server.close();
    waitingRoom.close();
    runner.stop();
    providers.closeSessions();
    await Promise.race([Promise.all([closed, runner.whenIdle()]), pause(FLUSH_MS)]);
    await billing.close(FLUSH_MS);
    server.server.closeAllConnections();
    providers.close();
    await closed;
    await closeStores();
  };

  try {
    await money.startSweeping();
    const developmentKeys = config.development
      ? await ensureDevelopmentKeys(database, join(directory, 'development-keys.json'), now())
      : null;
    if (developmentKeys !== null) {
      const key = await findKey(database, hashKey(developmentKeys.api_key));
      if (key !== null) await ensureDevelopmentDeposit(ledger, key.accountId, now());
    }
    if (config.console.adminKey !== null) await ensureAdminKey(database, config.console.adminKey, now());
    address = await listen(() => server.listen({ host: config.host, port: config.port, backlog: BACKLOG }), config);
    if (config.metrics !== null) metricsServer = await openMetrics(metrics, config.metrics);
    const metricsPort = metricsServer?.port ?? null;
    const { machineCodes } = people;
    return {
      address,
      developmentKeys,
      providers,
      devices: devices.management,
      apiKeyCache,
      ledger,
      prices,
      database,
      machineCodes,
      metricsPort,
      close,
    };
  } catch (error) {
    await server.close();
    await closeStores();
    throw error;
  }
}

/** What this makes, or a closed database. */
async function orDestroy<T>(database: Database, make: () => Promise<T>): Promise<T> {
  try {
    return await make();
  } catch (error) {
    await database.destroy();
    throw error;
  }
}

async function listen(start: () => Promise<string>, config: Config): Promise<string> {
  try {
    return await start();
  } catch (error) {
    const reason = errorReason(error);
    const what = reason === 'EADDRINUSE' ? 'the port is taken' : reason;
    throw new StartupError(`The coordinator cannot listen on ${config.host}:${config.port}: ${what}.`, { cause: error });
  }
}

async function openMetrics(metrics: Metrics, { host, port }: NonNullable<Config['metrics']>): Promise<MetricsServer> {
  try {
    return await startMetricsServer(metrics, host, port);
  } catch (error) {
    throw new StartupError(`Metrics cannot be served at ${host}:${port}: ${errorReason(error)}.`, { cause: error });
  }
}

function pause(ms: number, hurry?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (hurry?.aborted) return resolve();
    const timer = setTimeout(resolve, ms).unref();
    hurry?.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
