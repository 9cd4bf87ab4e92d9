/**
 * `startApp`: starts a coordinator in this process. The `serve` command and tests call it.
 *
 * Each `open…` function of `wiring/` creates one part of the program. `context.disposal` collects the functions that close the parts.
 */
import { errorFacts } from './log.js';
import { openAccounts } from './wiring/accounts.js';
import type { App, AppOptions } from './wiring/app-options.js';
import { openBilling } from './wiring/billing.js';
import { openChecks } from './wiring/checks.js';
import { connectDatabase, openRepositories } from './wiring/database.js';
import { openHealthHistory } from './wiring/health-history.js';
import { listen, openHttpServer } from './wiring/http.js';
import { openImages } from './wiring/images.js';
import { openInference } from './wiring/inference.js';
import { ensureInitialData } from './wiring/initial-data.js';
import { openModelAvailability } from './wiring/model-availability.js';
import { openNetworkStatus, reportComponents } from './wiring/network-status.js';
import { acceptProviders, openProviders } from './wiring/providers.js';
import { openReleases } from './wiring/releases.js';
import { startRetention } from './wiring/retention.js';
import { registerRoutes } from './wiring/routes.js';
import { shutDown } from './wiring/shutdown.js';
import { createStartContext } from './wiring/start-context.js';
import { openTelemetry, serveMetrics } from './wiring/telemetry.js';
import { openTransparencyLog, recordNetwork } from './wiring/transparency-log.js';

export type { App, AppOptions } from './wiring/app-options.js';

/**
 * Resolves once the coordinator listens. After an error, closes what it opened, and rejects.
 *
 * Rejects with a StartupError if the operator can mend the fault, such as a port in use.
 */
export async function startApp(options: AppOptions): Promise<App> {
  const context = createStartContext(options);
  const { config, disposal } = context;
  /** URL of the HTTP server. Empty until the server listens. */
  let address = '';
  try {
    const database = await connectDatabase(context);
    const telemetry = await openTelemetry(context);
    const { metrics } = telemetry;
    const billing = await openBilling(context, database, metrics);
    const { ledger, prices } = billing;
    const images = await openImages(context, database);
    const repositories = await openRepositories(context, database);
    const transparencyLog = await openTransparencyLog(context, { database, metrics });
    const providers = openProviders(context, { database, repositories, metrics, address: () => address });
    const inference = await openInference(context, { repositories, billing, images, providers, metrics });
    const http = await openHttpServer(context, { ledger, repositories, metrics, networkLimits: inference.cluster.limits });
    const { server, responses } = http;
    const accounts = await openAccounts(context, {
      database,
      ledger,
      metrics,
      apiKeyCache: repositories.apiKeyCache,
      providerLinks: providers.providerLinks,
      attemptCounters: repositories.attemptCounters,
    });
    const checks = openChecks(context, { database, repositories, images, transparencyLog, metrics });
    const healthHistory = openHealthHistory(context, { database, metrics, providers, inference, checks });
    const { views } = inference.cluster;
    const modelAvailability = openModelAvailability(context, { database, registry: providers.providers, views });
    const networkStatus = openNetworkStatus(context, { database, modelAvailability });
    const { outcomes } = providers;
    const agentReleases = await openReleases(context, { database, registry: providers.providers, outcomes, metrics });
    const { releases } = agentReleases;
    const services = { telemetry, billing, images, providers, inference, http, accounts, transparencyLog, agentReleases };
    await registerRoutes(context, { database, repositories, ...services, modelAvailability, networkStatus, healthHistory });
    acceptProviders(context, providers.providers, server.server);
    const { quarantines } = repositories;
    recordNetwork(context, { transparencyLog, registry: providers.providers, quarantines, releases });
    startRetention(context, database);
    await billing.startLedgerMaintenance();
    const developmentKeys = await ensureInitialData(context, database, ledger);
    address = await listen(context, server);
    await reportComponents(context, {
      database,
      hasConsole: http.consoleFiles !== null,
      hasPayments: config.development || accounts.payments.processor !== null,
      paymentHealth: accounts.payments.paymentHealth,
    });
    const metricsPort = await serveMetrics(context, metrics);
    const shutdownDeps = { server, responses, providers: providers.providers, inference, billing: billing.billing };
    return {
      address,
      developmentKeys,
      providers: providers.providers,
      cluster: inference.cluster,
      changeHints: context.changeHints,
      checkRollouts: agentReleases.checkRollouts,
      devices: providers.devices.management,
      apiKeyCache: repositories.apiKeyCache,
      ledger,
      prices,
      database,
      transparencyLog,
      metricsPort,
      close: (graceMs = config.drainMs, abort) => shutDown(context, shutdownDeps, graceMs, abort),
    };
  } catch (error) {
    await disposal.close().catch((closeError: unknown) => context.log.error({ error: errorFacts(closeError) }, 'shutdown failed'));
    throw error;
  }
}
