/** `readConfig` reads and validates the settings of a coordinator from environment variables, at the start of a command. */
import { isIP } from 'node:net';
import { MAX_REQUEST_BYTES, MAX_VISION_REQUEST_BYTES, type TrustLevel } from '@inference/protocol';
import { readClusterSettings } from '../cluster/settings.js';
import { readDeviceManagement } from '../devices/settings.js';
import { readTracing } from '../telemetry/tracing-settings.js';
import { readTransparencyLog } from '../transparency-log/settings.js';
import { checked, choice, type Environment, flag, httpUrl, integer, list, secret, text } from './environment.js';
import { readMail } from './mail.js';
import { readOperator } from './operator.js';
import { MAX_RETENTION_DAYS, readRetention } from './retention.js';
import { withSecretFiles } from './secret-files.js';
import { StartupError } from './startup-error.js';

export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

const TRUST_LEVELS = ['self_signed', 'hardware'] as const satisfies readonly TrustLevel[];

/** Throws {@link StartupError} that names the first invalid variable. */
export function readConfig(environment: Environment) {
  const env = withSecretFiles(environment);
  const development = flag(env, 'DEVELOPMENT');
  return {
    /** Development mode: a first account whose keys are written to a file, free deposits, mails in the log, and weaker defaults. */
    development,
    ...readServer(env),
    ...readDatabase(env),
    /** Null: this coordinator runs alone. */
    cluster: readClusterSettings(env),
    ...readTrust(env, development),
    ...readCharges(env, development),
    retention: readRetention(env),
    /** Null: no traces. */
    tracing: readTracing(env),
    logLevel: choice(env, 'LOG_LEVEL', LOG_LEVELS, 'info'),
    /** Address of a metrics server that needs no key. Null: metrics only at the coordinator's own port, with an admin key. */
    metrics: readMetrics(env),
    ...readRequestLimits(env),
    deviceManagement: readDeviceManagement(env),
    ...readModels(env),
    ...readImages(env),
    rateLimits: readRateLimits(env),
    transparencyLog: readTransparencyLog(env),
    console: readConsole(env),
    /** Null: no deposits and payouts through Stripe. */
    stripe: readStripe(env),
    /** Name and address on deposit receipts. */
    operator: readOperator(env),
  };
}

export type Config = Readonly<ReturnType<typeof readConfig>>;
export type RateLimitConfig = Config['rateLimits'];

/** 256 MiB: 8 requests of the maximum size with images, or about 60,000 requests of the usual size (4 KiB). */
const MAX_HELD_BYTES = 256 * 1024 * 1024;

/** 64 MiB. Limited because `count_tokens` is free, but is work for a provider. */
const COUNT_TOKENS_BYTES_PER_MINUTE = 64 * 1024 * 1024;

/** In micro-USD: 10,000 USD per million tokens and 1000 USD per image. The API for prices has the same maximums. */
const MAX_RATE = 10_000_000_000;
const MAX_IMAGE_RATE = 1_000_000_000;
/** Same as in `database/ledger/activity.ts`. */
const MAX_MATURITY_DAYS = 365;
/** One week. */
const MAX_IMAGE_URL_SECONDS = 604_800;
const MAX_IMAGE_STORE_MB = 2 ** 24;
/** Clients and proxies time out on slower responses. */
const MAX_IMAGE_QUEUE_SECONDS = 600;

function readServer(env: Environment) {
  return {
    host: text(env, 'HOST') ?? '127.0.0.1',
    /** 0: the operating system chooses a free port. */
    port: integer(env, 'PORT', 8080, 0, 65_535),
    dataDir: text(env, 'DATA_DIR') ?? '.data',
    /** Addresses or ranges (CIDR) of proxies whose `X-Forwarded-For` is trusted. */
    trustedProxies: addressRanges(env, 'TRUSTED_PROXIES'),
    /** Whether web pages of other origins may call the API with a key. */
    cors: choice(env, 'CORS', ['on', 'off'], 'on') === 'on',
    /** Folder of the built web console. Null: the build next to the program, if there is one. */
    consoleDir: text(env, 'CONSOLE_DIR'),
    /** Maximum time for running jobs to end after a shutdown began. */
    drainMs: 1000 * integer(env, 'DRAIN_SECONDS', 25, 0, 3600),
  };
}

function readDatabase(env: Environment) {
  return {
    /** PostgreSQL (`postgres://…`) in place of the database file under the data directory. */
    databaseUrl: postgresUrl(env, 'DATABASE_URL'),
    /** Whether a start applies pending migrations. False: a start with pending migrations fails. */
    migrateOnStart: text(env, 'MIGRATE_ON_START') === null || flag(env, 'MIGRATE_ON_START'),
  };
}

/** Which providers get requests, and how often they must answer a challenge. */
function readTrust(env: Environment, development: boolean) {
  const allowSimulatedEnclave = flag(env, 'ALLOW_SIMULATED_ENCLAVE');
  const simulatedDeviceAuthority = text(env, 'SIMULATED_DEVICE_AUTHORITY');
  if (simulatedDeviceAuthority !== null && !allowSimulatedEnclave) {
    throw new StartupError(
      "SIMULATED_DEVICE_AUTHORITY needs ALLOW_SIMULATED_ENCLAVE=1: without it Apple's root certificate is the only trust anchor.",
    );
  }
  // Self-signed claims of a device are accepted by default only in networks that are explicitly for tests.
  const defaultTrustLevel = allowSimulatedEnclave || development ? 'self_signed' : 'hardware';
  return {
    allowSimulatedEnclave,
    /** PEM file of the root certificate of simulated devices. Null: only Apple's root certificate is trusted. */
    simulatedDeviceAuthority,
    /** Providers below this level stay connected and get no jobs. */
    minTrustLevel: choice(env, 'MIN_TRUST_LEVEL', TRUST_LEVELS, defaultTrustLevel),
    /** Models that are placed only on providers of trust level `hardware`; `*`: all models. */
    hardwareOnlyModels: list(env, 'HARDWARE_ONLY_MODELS'),
    /** Interval at which each provider must sign a fresh nonce. */
    challengeIntervalMs: 1000 * integer(env, 'CHALLENGE_INTERVAL_SECONDS', 300, 1, 86_400),
  };
}

function readCharges(env: Environment, development: boolean) {
  const promptPerMillion = integer(env, 'DEFAULT_PROMPT_PRICE', 50_000, 0, MAX_RATE);
  return {
    /** Prices of models without a price of their own, in micro-USD per million tokens and per image. */
    defaultPrices: {
      promptPerMillion,
      cachedPerMillion: integer(env, 'DEFAULT_CACHED_PROMPT_PRICE', promptPerMillion, 0, promptPerMillion),
      completionPerMillion: integer(env, 'DEFAULT_COMPLETION_PRICE', 200_000, 0, MAX_RATE),
      perImage: integer(env, 'DEFAULT_IMAGE_PRICE', 2000, 0, MAX_IMAGE_RATE),
    },
    /** Share of a job's price for the provider's owner, in percent; the platform gets the rest. */
    providerSharePercent: integer(env, 'PROVIDER_SHARE_PERCENT', 90, 0, 100),
    /** Jobs on a provider of the requesting account cost nothing. */
    ownMachinesFree: flag(env, 'OWN_MACHINES_FREE'),
    /** Days until earnings can be withdrawn; 0: at once. */
    earningsMaturityDays: integer(env, 'EARNINGS_MATURITY_DAYS', development ? 0 : 7, 0, MAX_MATURITY_DAYS),
    /** Age in days at which usage entries are removed; null: never. */
    usageRetentionDays: integer(env, 'USAGE_RETENTION_DAYS', 0, 0, MAX_RETENTION_DAYS) || null,
  };
}

function readRequestLimits(env: Environment) {
  const maxRequestBytes = integer(env, 'MAX_REQUEST_BYTES', MAX_REQUEST_BYTES, 1, MAX_REQUEST_BYTES);
  return {
    /** Maximum request body without images in bytes, bounded by the wire protocol. */
    maxRequestBytes,
    /** Maximum request body with images, in bytes; at most `maxHeldBytes`. */
    maxVisionRequestBytes: integer(env, 'MAX_VISION_REQUEST_BYTES', MAX_VISION_REQUEST_BYTES, 1, MAX_VISION_REQUEST_BYTES),
    /** Maximum bytes of request bodies in memory at a time, from accounts with a balance. Other requests have smaller budgets. */
    maxHeldBytes: integer(env, 'MAX_HELD_REQUEST_BYTES', MAX_HELD_BYTES, maxRequestBytes, 2 ** 40),
    /** Maximum bytes, also charged for pixels of images, that `count_tokens` takes per account and minute; 0: no limit. */
    countTokensBytesPerMinute: integer(env, 'COUNT_TOKENS_BYTES_PER_MINUTE', COUNT_TOKENS_BYTES_PER_MINUTE, 0, 2 ** 40),
  };
}

function readModels(env: Environment) {
  return {
    /** Maximum hedged requests (late jobs with a second, concurrent attempt), in percent of all jobs; 0: none. */
    hedgePercent: integer(env, 'HEDGE_PERCENT', 5, 0, 50),
    /** Whether only models in the operator's catalogue may be served. */
    catalogueOnly: flag(env, 'CATALOGUE_ONLY'),
    /** File with the signed agent releases. Null: agents are offered no updates. */
    agentReleases: text(env, 'AGENT_RELEASES'),
  };
}

function readImages(env: Environment) {
  return {
    images: {
      /** Validity of the URL of a generated image, from the request on. */
      urlMs: 1000 * integer(env, 'IMAGE_URL_SECONDS', 3600, 1, MAX_IMAGE_URL_SECONDS),
      /** Maximum bytes on disk for generated images, which stay until their URLs expire. */
      storeBytes: 2 ** 20 * integer(env, 'IMAGE_STORE_MB', 2048, 1, MAX_IMAGE_STORE_MB),
      /** Maximum time that a request waits for a free image provider. */
      queueMs: 1000 * integer(env, 'IMAGE_QUEUE_SECONDS', 60, 0, MAX_IMAGE_QUEUE_SECONDS),
    },
    /** Whether the coordinator fetches images that a request names by `https` URL. By default such requests are refused. */
    fetchImageUrls: flag(env, 'FETCH_IMAGE_URLS'),
    /** Maximum share of the image store per account, and per provider for unfinished images, in percent. */
    imageSharePercent: integer(env, 'IMAGE_STORE_SHARE_PERCENT', 25, 1, 100),
  };
}

/** Maximum requests per minute, or per quarter of an hour (`emailPerQuarterHour`). 0: no limit. */
function readRateLimits(env: Environment) {
  return {
    keyPerMinute: integer(env, 'RATE_LIMIT_KEY', 60_000, 0, 1_000_000_000),
    addressPerMinute: integer(env, 'RATE_LIMIT_ADDRESS', 6000, 0, 1_000_000_000),
    badKeysPerMinute: integer(env, 'RATE_LIMIT_BAD_KEYS', 300, 0, 1_000_000_000),
    authPerMinute: integer(env, 'RATE_LIMIT_SIGN_IN', 120, 0, 1_000_000_000),
    emailPerQuarterHour: integer(env, 'RATE_LIMIT_EMAIL', 20, 0, 1_000_000_000),
  };
}

function readConsole(env: Environment) {
  const config = {
    /** Origin of this coordinator in browsers, such as `https://gateway.example`; null: loopback addresses only. */
    publicOrigin: readOrigin(env, 'PUBLIC_URL'),
    /** Secret that signs session cookies; null: a generated secret, in the data directory or shared by the cluster. */
    authSecret: secret(env, 'AUTH_SECRET', /^.{32,}$/, 'at least 32 characters'),
    requireEmailVerification: flag(env, 'REQUIRE_EMAIL_VERIFICATION'),
    mail: readMail(env),
    /** Admin key chosen by the operator, valid beside those in the database; null: none. */
    adminKey: secret(env, 'ADMIN_KEY', /^service-[A-Za-z0-9_-]{43}$/, 'service- and 43 letters, digits, dashes and underscores'),
  };
  if (config.requireEmailVerification && config.mail === null && !flag(env, 'DEVELOPMENT')) {
    throw new StartupError('REQUIRE_EMAIL_VERIFICATION needs SMTP_URL or MAIL_URL, or nobody could sign in.');
  }
  return config;
}

function readStripe(env: Environment) {
  const secretKey = secret(env, 'STRIPE_SECRET_KEY', /^\S+$/, "Stripe's secret key");
  const webhookSecret = secret(env, 'STRIPE_WEBHOOK_SECRET', /^\S+$/, 'the signing secret of the webhook');
  if (secretKey === null && webhookSecret === null) return null;
  if (secretKey === null || webhookSecret === null) {
    throw new StartupError('STRIPE_SECRET_KEY and STRIPE_WEBHOOK_SECRET must be set together.');
  }
  return {
    secretKey,
    webhookSecret,
    /** API address for tests; null: Stripe's own. */
    apiUrl: httpUrl(env, 'STRIPE_API_URL'),
  };
}

function readMetrics(env: Environment) {
  const port = text(env, 'METRICS_PORT') === null ? null : integer(env, 'METRICS_PORT', 0, 0, 65_535);
  return port === null ? null : { host: text(env, 'METRICS_HOST') ?? '127.0.0.1', port };
}

function postgresUrl(env: Environment, name: string): string | null {
  const isUrl = (value: string): boolean => /^postgres(ql)?:\/\//.test(value) && URL.canParse(value);
  return checked(env, name, isUrl, 'look like postgres://user:password@host:5432/database');
}

function readOrigin(env: Environment, name: string): string | null {
  const value = httpUrl(env, name);
  if (value === null) return null;
  const url = new URL(value);
  if (url.pathname === '/' && url.search === '' && url.hash === '' && url.username === '') return url.origin;
  throw new StartupError(`${name} must be an address without a path, such as https://gateway.example.`);
}

function addressRanges(env: Environment, name: string): string[] {
  const ranges = list(env, name);
  for (const range of ranges) {
    const [address = '', bits] = range.split('/');
    const version = isIP(address);
    const good = version !== 0 && (bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128)));
    if (!good) throw new StartupError(`${name} must be addresses or ranges such as 10.0.0.0/8, separated by commas, not "${range}".`);
  }
  return ranges;
}
