/** `AppOptions` is the argument of `startApp`, `App` its result. */
import type { Ledger } from '../billing/ledger/ledger.js';
import type { PriceRepository } from '../billing/prices/price-repository.js';
import type { Config } from '../config/config.js';
import type { ApiKeyCache } from '../database/accounts/api-key-cache.js';
import type { DevelopmentKeys } from '../database/accounts/initial-keys.js';
import type { ChangeHints } from '../database/change-hints.js';
import type { Database } from '../database/tables.js';
import type { ScheduleRules } from '../devices/command-policy.js';
import type { DeviceManagement } from '../devices/device-management.js';
import type { JobTimings } from '../inference/job-timings.js';
import type { ImageFetcher } from '../inference/request/image-fetcher.js';
import type { Log } from '../log.js';
import type { ProviderRegistry } from '../providers/provider-registry.js';
import type { SessionTimings } from '../providers/session/session-options.js';
import type { TransparencyLog } from '../transparency-log/transparency-log.js';
import type { ClusterServices } from './cluster.js';

/** Options other than `config` and `log` are for tests, which shorten times and replace parts. */
export interface AppOptions {
  readonly config: Config;
  readonly log: Log;
  readonly providerTimings?: Partial<SessionTimings>;
  readonly jobTimings?: Partial<JobTimings>;
  readonly maxWaitingPerModel?: number;
  /** Maximum time for a client to send its request. */
  readonly requestMs?: number;
  /** Time within which at least 4096 bytes of a request body must arrive. */
  readonly bodyWindowMs?: number;
  /** Wraps the ledger, to simulate failures. */
  readonly wrapLedger?: (ledger: Ledger) => Ledger;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
  readonly random?: () => number;
  /** Maximum wait for a lock on the database file held by another process. */
  readonly databaseBusyMs?: number;
  /** Interval of reading rows that other coordinators changed. Also the lifetime of API keys in `ApiKeyCache`. */
  readonly refreshMs?: number;
  /** Interval of checks whether models are available, and of reports on this coordinator's components for the status page. */
  readonly availabilityCheckMs?: number;
  /** Interval of checks whether more machines get a new agent version. */
  readonly rolloutCheckMs?: number;
  /** When managed Macs get device-management commands. */
  readonly deviceRules?: Partial<ScheduleRules>;
  /** Interval of checks which of these commands are due. */
  readonly deviceIntervalMs?: number;
  /** Interval at which an agent polls for the approval of its device code. */
  readonly linkPollMs?: number;
  readonly imageFetcher?: Pick<ImageFetcher, 'fetchAll'>;
  /** Cost parameter N of scrypt for passwords. */
  readonly passwordCost?: number;
}

export interface App {
  /** `http://host:port`. */
  readonly address: string;
  /** Null outside development mode. */
  readonly developmentKeys: DevelopmentKeys | null;
  readonly providers: ProviderRegistry;
  readonly cluster: ClusterServices;
  /** Tells other coordinators which rows this one has changed. */
  readonly changeHints: ChangeHints;
  /** Runs a check of the agent rollouts now. */
  readonly checkRollouts: () => Promise<void>;
  readonly devices: DeviceManagement;
  readonly apiKeyCache: ApiKeyCache;
  readonly ledger: Ledger;
  readonly prices: PriceRepository;
  readonly database: Database;
  readonly transparencyLog: TransparencyLog;
  /** Port of the separate metrics server. Null without one. */
  readonly metricsPort: number | null;
  /** Shuts the coordinator down. Running jobs have `graceMs` to end, by default `config.drainMs`; `abort` cuts this time short. */
  close(graceMs?: number, abort?: AbortSignal): Promise<void>;
}
