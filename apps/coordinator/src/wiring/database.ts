/** `connectDatabase` opens the database, `openRepositories` what several parts of the program read from it and write to it. */
import { join } from 'node:path';
import { ApiKeyCache } from '../database/accounts/api-key-cache.js';
import { OperatorAuditLog } from '../database/accounts/operator-audit-log.js';
import { ATTEMPT_NAMES_SECRET, AttemptRepository } from '../database/attempt-repository.js';
import { openDatabase } from '../database/connection/open-database.js';
import { FailedRequestRepository } from '../database/failed-request-repository.js';
import { KeysetRepository } from '../database/keyset-repository.js';
import { everyPeriod } from '../database/periodic-work.js';
import { CatalogueRepository } from '../database/providers/catalogue-repository.js';
import { LastSeenRepository } from '../database/providers/last-seen-repository.js';
import { QuarantineRepository } from '../database/providers/quarantine-repository.js';
import { ReputationRepository } from '../database/providers/reputation-repository.js';
import { pruneSealedNonces } from '../database/sealed-nonce-repository.js';
import { sharedSecret } from '../database/secret-repository.js';
import type { Database } from '../database/tables.js';
import { modelsOfLatestJobs } from '../database/usage-repository.js';
import { CACHE_SCOPE_SECRET, CacheScopes } from '../inference/request/cache-scopes.js';
import { PREFIX_HASH_SECRET, PrefixHashes } from '../inference/request/prefix-hashes.js';
import type { AttemptCounters } from '../limits/attempt-counters.js';
import { errorFacts } from '../log.js';
import { RECENTLY_SEEN_MS } from '../providers/placement/recently-seen-models.js';
import { localAttempts } from '../routes/plugins/attempt-limit.js';
import type { StartContext } from './start-context.js';

/** Connects to PostgreSQL at `DATABASE_URL`, or opens an SQLite file in the data directory. */
export async function connectDatabase({ config, options, log, directory, disposal }: StartContext): Promise<Database> {
  const database = await openDatabase(
    config.databaseUrl === null
      ? {
          file: join(directory, 'coordinator.db'),
          ...(options.databaseBusyMs === undefined ? {} : { busyMs: options.databaseBusyMs }),
        }
      : { url: config.databaseUrl, onConnectionLost: (error) => log.warn({ error: errorFacts(error) }, 'database connection lost') },
    { migrate: config.migrateOnStart },
  );
  disposal.defer(() => database.destroy());
  return database;
}

export interface Repositories {
  /** Authenticates requests by API key, and caches valid keys. */
  readonly apiKeyCache: ApiKeyCache;
  /** Record of each provider's faults, which delay or disable the placement of jobs there. */
  readonly reputations: ReputationRepository;
  /** State of each provider that an account owns, when its connection last began or ended. */
  readonly lastSeen: LastSeenRepository;
  /** Providers that an operator excluded from jobs. */
  readonly quarantines: QuarantineRepository;
  /** The operator's list of models, with the hashes of the files that providers may serve. */
  readonly catalogue: CatalogueRepository;
  /** Record of the operators' actions. */
  readonly auditLog: OperatorAuditLog;
  /** Derives the ids that separate the accounts' prompt caches on a provider. */
  readonly cacheScopes: CacheScopes;
  /** Hashes the beginnings of prompts, by which placement finds providers that cached them. */
  readonly prefixHashes: PrefixHashes;
  /** Limits on sign-ins, guesses at codes and keys, and requests for e-mails. */
  readonly attemptCounters: AttemptCounters;
  /** Published lists of the providers' keys, to which clients encrypt end to end. */
  readonly keysets: KeysetRepository;
  /** Error codes of failed inference requests. */
  readonly failedRequests: FailedRequestRepository;
  /** Models of the last day's jobs, from before this process started. */
  readonly modelsOfRecentJobs: readonly string[];
}

/** In a cluster, `changeHints` tells the other coordinators of changed rows, which they then read again. */
export async function openRepositories(context: StartContext, database: Database): Promise<Repositories> {
  const { now, options, onWriteError, disposal, changeHints, refresh } = context;
  const apiKeyCache = new ApiKeyCache({
    database,
    now,
    onWriteError,
    onChange: (id) => changeHints.publish('key', id),
    ...(options.refreshMs === undefined ? {} : { cacheMs: options.refreshMs }),
  });
  changeHints.on('key', (ids) => apiKeyCache.changedElsewhere(ids));
  disposal.defer(() => apiKeyCache.close());
  const reputations = await ReputationRepository.open({ database, now, onWriteError, ...refresh });
  disposal.defer(() => reputations.close());
  changeHints.on('reputation', (ids) => reputations.changedElsewhere(ids));
  const lastSeen = new LastSeenRepository({ database, onWriteError });
  disposal.defer(() => lastSeen.close());
  const quarantines = await QuarantineRepository.open({
    database,
    now,
    onError: onWriteError,
    onWrite: () => changeHints.publish('quarantines'),
    ...refresh,
  });
  changeHints.on('quarantines', () => quarantines.changedElsewhere());
  disposal.defer(() => quarantines.close());
  const catalogue = await CatalogueRepository.open({
    database,
    now,
    onError: onWriteError,
    onWrite: () => changeHints.publish('catalogue'),
    ...refresh,
  });
  changeHints.on('catalogue', () => catalogue.changedElsewhere());
  disposal.defer(() => catalogue.close());
  startPruningNonces(context, database);
  const failedRequests = new FailedRequestRepository({ database, onWriteError });
  disposal.defer(() => failedRequests.close());
  return {
    apiKeyCache,
    reputations,
    lastSeen,
    quarantines,
    catalogue,
    auditLog: new OperatorAuditLog({ database, now }),
    cacheScopes: new CacheScopes(await sharedSecret(database, CACHE_SCOPE_SECRET)),
    prefixHashes: new PrefixHashes(context.config.cluster === null ? undefined : await sharedSecret(database, PREFIX_HASH_SECRET)),
    attemptCounters: await openAttemptCounters(context, database),
    keysets: new KeysetRepository(database),
    failedRequests,
    modelsOfRecentJobs: await modelsOfLatestJobs(database, now() - RECENTLY_SEEN_MS),
  };
}

const PRUNE_MS = 600_000;

/** Deletes the nonces of expired sealed (end-to-end encrypted) requests. Until then, a nonce rejects a replayed request. */
function startPruningNonces({ onWriteError, disposal }: StartContext, database: Database): void {
  const work = () => pruneSealedNonces(database);
  disposal.defer(everyPeriod({ database, name: 'prune sealed nonces', periodMs: PRUNE_MS, work, onError: onWriteError }));
}

/** In a cluster, the counters are in the database. Otherwise they are in memory. */
async function openAttemptCounters({ config, now, onWriteError, disposal }: StartContext, database: Database): Promise<AttemptCounters> {
  if (config.cluster === null) return localAttempts(now);
  const attempts = new AttemptRepository({ database, secret: await sharedSecret(database, ATTEMPT_NAMES_SECRET), onWriteError });
  disposal.defer(
    everyPeriod({ database, name: 'prune attempts', periodMs: PRUNE_MS, work: () => attempts.prune(), onError: onWriteError }),
  );
  return attempts;
}
