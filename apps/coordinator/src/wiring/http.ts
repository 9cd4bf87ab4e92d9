/** `openHttpServer` creates the HTTP server without routes: body and rate limits, API key authentication, audit log, console files. */
import type { FastifyInstance } from 'fastify';
import type { Ledger } from '../billing/ledger/ledger.js';
import { errorReason, StartupError } from '../config/startup-error.js';
import type { NetworkLimits } from '../limits/network-limits.js';
import { errorFacts } from '../log.js';
import { apiKeyAuth } from '../routes/plugins/api-key-auth.js';
import { ResponseDrain } from '../routes/plugins/connections/response-drain.js';
import { FundedAccounts } from '../routes/plugins/funded-accounts.js';
import { operatorAuditLog } from '../routes/plugins/operator-audit-log.js';
import { rateLimits } from '../routes/plugins/rate-limits.js';
import { createHttpServer } from '../routes/plugins/server.js';
import { type ConsoleFiles, openConsoleFiles } from '../routes/system/console-files.js';
import { openApi } from '../routes/system/openapi.js';
import { registerBodyGauges } from '../telemetry/gauges.js';
import type { Metrics } from '../telemetry/metrics.js';
import type { Repositories } from './database.js';
import type { StartContext } from './start-context.js';

/** Maximum connections that wait to be accepted, for thousands of clients that reconnect at once. The operating system may lower it. */
const BACKLOG = 4096;

export interface HttpServices {
  readonly server: FastifyInstance;
  /** Tracks responses that clients are still reading. */
  readonly responses: ResponseDrain;
  readonly consoleFiles: ConsoleFiles | null;
}

interface HttpDeps {
  readonly ledger: Ledger;
  readonly repositories: Repositories;
  readonly metrics: Metrics;
  /** Null outside a cluster. */
  readonly networkLimits: NetworkLimits | null;
}

export async function openHttpServer(context: StartContext, deps: HttpDeps): Promise<HttpServices> {
  const { config, options, log, now, jobTimings, onWriteError, isDraining, refusing } = context;
  const { ledger, repositories, metrics, networkLimits } = deps;
  const { maxRequestBytes, maxVisionRequestBytes, maxHeldBytes, trustedProxies, cors } = config;
  const { requestMs, bodyWindowMs } = options;
  const funded = new FundedAccounts({ ledger, onError: (error) => log.error({ error: errorFacts(error) }, 'balance read failed') });
  const consoleFiles = openConsoleFiles(config.consoleDir);
  const server = await createHttpServer({
    maxRequestBytes,
    maxVisionRequestBytes,
    maxHeldBytes,
    isFunded: (accountId) => funded.isFunded(accountId),
    bodyWindowMs,
    requestMs,
    trustedProxies,
    cors,
    now,
    log,
    isDraining,
    isRefusing: () => refusing.signal.aborted,
    sendNotFoundPage: consoleFiles?.sendNotFoundPage,
  });
  registerBodyGauges(metrics, server.requestBodies);
  const responses = new ResponseDrain(jobTimings.clientDrainMs);
  responses.attach(server.server);
  const { apiKeyCache, auditLog, attemptCounters } = repositories;
  const shared = networkLimits === null ? null : { limits: networkLimits, attempts: attemptCounters };
  await server.register(rateLimits, { ...config.rateLimits, shared });
  await server.register(apiKeyAuth, { apiKeyCache, now, onFailure: onWriteError });
  await server.register(openApi);
  await server.register(operatorAuditLog, { auditLog, onFailure: onWriteError });
  return { server, responses, consoleFiles };
}

/** Starts to listen, and returns the URL, `http://host:port`. Throws StartupError if the port cannot be used. */
export async function listen({ config, disposal }: StartContext, server: FastifyInstance): Promise<string> {
  const { host, port } = config;
  // Registered last, so that after a failed start the server closes before the resources of its requests.
  disposal.defer(() => server.close());
  try {
    return await server.listen({ host, port, backlog: BACKLOG });
  } catch (error) {
    const reason = errorReason(error);
    const explanation = reason === 'EADDRINUSE' ? 'the port is taken' : reason;
    throw new StartupError(`The coordinator cannot listen on ${host}:${port}: ${explanation}.`, { cause: error });
  }
}
