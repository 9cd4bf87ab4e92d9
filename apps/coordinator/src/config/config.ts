/**
 * Configuration from the environment. Every variable is validated here, once; a StartupError names the bad variable. The rest of
 * the program sees only this typed record.
 */
import { isIP } from 'node:net';
import { MAX_REQUEST_BYTES, type TrustLevel } from '@inference/protocol';
import { type DeviceManagementSettings, readDeviceManagement } from '../devices/settings.js';
import { readTracing, type TracingSettings } from '../telemetry/tracing-settings.js';
import { StartupError } from './startup-error.js';

export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

const TRUST_LEVELS = ['self_signed', 'hardware'] as const satisfies readonly TrustLevel[];

export interface Config {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  readonly dataDir: string;
  /** PostgreSQL (`postgres://…`) in place of the database file under the data directory. */
  readonly databaseUrl: string | null;
  /** Creates the first account and keys, stored in a file. */
  readonly development: boolean;
  /** Prices of models without a price of their own, in micro-USD per million tokens and per image. */
  readonly defaultPrices: { readonly promptPerMillion: number; readonly completionPerMillion: number; readonly perImage: number };
  /** Older usage entries are removed; null: never. */
  readonly usageRetentionDays: number | null;
  /** Admits providers with a simulated enclave. */
  readonly allowSimulatedEnclave: boolean;
  /** PEM file of the trust anchor for simulated certificate chains; null for Apple's. */
  readonly simulatedDeviceAuthority: string | null;
  readonly logLevel: LogLevel;
  /** Null: no traces. */
  readonly tracing: TracingSettings | null;
  /** Address of the metrics server without a key; null: metrics only at the coordinator's own port, with an admin key. */
  readonly metrics: { readonly host: string; readonly port: number } | null;
  /** Interval between two challenges of one provider, in milliseconds. */
  readonly challengeIntervalMs: number;
  /** Share of a job's price for the provider's owner, in percent; the platform gets the rest. */
  readonly providerSharePercent: number;
  /** Jobs on a provider of the requesting account cost nothing. */
  readonly ownMachinesFree: boolean;
  /** Days until earnings can be withdrawn; 0: at once. */
  readonly earningsMaturityDays: number;
  /** Maximum request body in bytes, bounded by the wire protocol. */
  readonly maxRequestBytes: number;
  /** Maximum bytes of request bodies in memory, over all clients. */
  readonly maxHeldBytes: number;
  /** Maximum bytes of `count_tokens` bodies per account and minute; 0: no limit. */
  readonly countTokensBytesPerMinute: number;
  /** Maximum time for running jobs to end after a shutdown began, in milliseconds. */
  readonly drainMs: number;
  /** Null: no device management. */
  readonly deviceManagement: DeviceManagementSettings | null;
  /** Addresses or ranges (CIDR) of proxies whose `X-Forwarded-For` is trusted. */
  readonly trustedProxies: readonly string[];
  /** Pages of other sites may call the API with a key. */
  readonly cors: boolean;
  /** Providers below this level stay connected and get no jobs. */
  readonly minTrustLevel: TrustLevel;
  /** Models for providers of trust level `hardware` only; `*` stands for all models. */
  readonly hardwareOnlyModels: readonly string[];
  /** Maximum hedged requests, in percent of all jobs; 0: none. */
  readonly hedgePercent: number;
  /** Only models of the catalogue are served. */
  readonly catalogueOnly: boolean;
  /** File of signed releases of the agent; null: none are offered. */
  readonly agentReleases: string | null;
  readonly images: ImageConfig;
  /** Maximum share of the image store per account, and per provider for unfinished images, in percent. */
  readonly imageSharePercent: number;
  readonly rateLimits: RateLimitConfig;
  readonly console: ConsoleConfig;
  /** Folder of the built web console; null: the build beside the program, if any. */
  readonly consoleDir: string | null;
  /** Null: no payments from outside. */
  readonly stripe: StripeConfig | null;
}

interface ImageConfig {
  /** How long the URL of an image is good, from the request on, in milliseconds. */
  readonly urlMs: number;
  /** Maximum bytes on disk for images that wait to be fetched. */
  readonly storeBytes: number;
  /** Maximum wait for an image provider, in milliseconds. */
  readonly queueMs: number;
}

/** Most requests in a window; 0 sets no limit. */
export interface RateLimitConfig {
  readonly keyPerMinute: number;
  readonly addressPerMinute: number;
  readonly badKeysPerMinute: number;
  readonly authPerMinute: number;
  readonly emailPerQuarter: number;
}

interface ConsoleConfig {
  /** Origin of this coordinator in browsers, such as `https://gateway.example`; null: loopback addresses only. */
  readonly publicOrigin: string | null;
  /** Secret for signing session cookies; null: a generated secret in the data directory. */
  readonly authSecret: string | null;
  readonly requireEmailVerification: boolean;
  /** HTTP service that accepts mail as JSON; null: no mail. */
  readonly mail: { readonly url: string; readonly token: string | null } | null;
  /** Admin key chosen by the operator; null: only admin keys in the database. */
  readonly adminKey: string | null;
}

interface StripeConfig {
  readonly secretKey: string;
  readonly webhookSecret: string;
  /** API address for tests; null: Stripe's own. */
  readonly apiUrl: string | null;
}

/** Reads the environment. Throws {@link StartupError} naming the first bad value. */
export function readConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const allowSimulatedEnclave = flag(env, 'ALLOW_SIMULATED_ENCLAVE');
  const development = flag(env, 'DEVELOPMENT');
  // A test network is an explicit choice. Elsewhere, unproved claims of a device do not count.
  const defaultTrustLevel = allowSimulatedEnclave || development ? 'self_signed' : 'hardware';
  const simulatedDeviceAuthority = text(env, 'SIMULATED_DEVICE_AUTHORITY', '') || null;
  if (simulatedDeviceAuthority !== null && !allowSimulatedEnclave) {
    throw new StartupError(
      "SIMULATED_DEVICE_AUTHORITY needs ALLOW_SIMULATED_ENCLAVE=1: without it the maker's root certificate is the only one.",
    );
  }
  return {
    host: text(env, 'HOST', '127.0.0.1'),
    port: integer(env, 'PORT', 8080, 0, 65_535),
    dataDir: text(env, 'DATA_DIR', '.data'),
    databaseUrl: postgresUrl(env, 'DATABASE_URL'),
    development,
    allowSimulatedEnclave,
    simulatedDeviceAuthority,
    defaultPrices: {
      promptPerMillion: integer(env, 'DEFAULT_PROMPT_PRICE', 50_000, 0, MAX_RATE),
      completionPerMillion: integer(env, 'DEFAULT_COMPLETION_PRICE', 200_000, 0, MAX_RATE),
      perImage: integer(env, 'DEFAULT_IMAGE_PRICE', 2000, 0, MAX_IMAGE_RATE),
    },
    usageRetentionDays: integer(env, 'USAGE_RETENTION_DAYS', 0, 0, MAX_RETENTION_DAYS) || null,
    tracing: readTracing(env),
    logLevel: choice(env, 'LOG_LEVEL', LOG_LEVELS, 'info'),
    metrics: text(env, 'METRICS_PORT', '') === '' ? null : readMetrics(env),
    challengeIntervalMs: 1000 * integer(env, 'CHALLENGE_INTERVAL_SECONDS', 300, 1, 86_400),
    providerSharePercent: integer(env, 'PROVIDER_SHARE_PERCENT', 90, 0, 100),
    ownMachinesFree: flag(env, 'OWN_MACHINES_FREE'),
    earningsMaturityDays: integer(env, 'EARNINGS_MATURITY_DAYS', flag(env, 'DEVELOPMENT') ? 0 : 7, 0, MAX_MATURITY_DAYS),
    ...readRequestBounds(env),
    countTokensBytesPerMinute: integer(env, 'COUNT_TOKENS_BYTES_PER_MINUTE', COUNT_TOKENS_BYTES_PER_MINUTE, 0, 2 ** 40),
    drainMs: 1000 * integer(env, 'DRAIN_SECONDS', 25, 0, 3600),
    deviceManagement: readDeviceManagement(env),
    trustedProxies: addressRanges(env, 'TRUSTED_PROXIES'),
    cors: choice(env, 'CORS', ['on', 'off'], 'on') === 'on',
    minTrustLevel: choice(env, 'MIN_TRUST_LEVEL', TRUST_LEVELS, defaultTrustLevel),
    hardwareOnlyModels: text(env, 'HARDWARE_ONLY_MODELS', '')
      .split(',')
      .map((model) => model.trim())
      .filter((model) => model !== ''),
    hedgePercent: integer(env, 'HEDGE_PERCENT', 5, 0, 50),
    catalogueOnly: flag(env, 'CATALOGUE_ONLY'),
    agentReleases: text(env, 'AGENT_RELEASES', '') || null,
    images: {
      urlMs: 1000 * integer(env, 'IMAGE_URL_SECONDS', 3600, 1, MAX_IMAGE_URL_SECONDS),
      storeBytes: 2 ** 20 * integer(env, 'IMAGE_STORE_MB', 2048, 1, MAX_IMAGE_STORE_MB),
      queueMs: 1000 * integer(env, 'IMAGE_QUEUE_SECONDS', 60, 0, MAX_IMAGE_QUEUE_SECONDS),
    },
    imageSharePercent: integer(env, 'IMAGE_STORE_SHARE_PERCENT', 25, 1, 100),
    rateLimits: {
      keyPerMinute: integer(env, 'RATE_LIMIT_KEY', 60_000, 0, 1_000_000_000),
      addressPerMinute: integer(env, 'RATE_LIMIT_ADDRESS', 6000, 0, 1_000_000_000),
      badKeysPerMinute: integer(env, 'RATE_LIMIT_BAD_KEYS', 300, 0, 1_000_000_000),
      authPerMinute: integer(env, 'RATE_LIMIT_SIGN_IN', 120, 0, 1_000_000_000),
      emailPerQuarter: integer(env, 'RATE_LIMIT_EMAIL', 20, 0, 1_000_000_000),
    },
    console: readConsole(env),
    consoleDir: text(env, 'CONSOLE_DIR', '') || null,
    stripe: readStripe(env),
  };
}

function readMetrics(env: Env): { readonly host: string; readonly port: number } {
  return { host: text(env, 'METRICS_HOST', '127.0.0.1'), port: integer(env, 'METRICS_PORT', 0, 0, 65_535) };
}

function readRequestBounds(env: Env): Pick<Config, 'maxRequestBytes' | 'maxHeldBytes'> {
  const maxRequestBytes = integer(env, 'MAX_REQUEST_BYTES', MAX_REQUEST_BYTES, 1, MAX_REQUEST_BYTES);
  return { maxRequestBytes, maxHeldBytes: integer(env, 'MAX_HELD_REQUEST_BYTES', MAX_HELD_BYTES, maxRequestBytes, 2 ** 40) };
}

/** 256 MiB: 32 requests of maximum size, or 60,000 of usual size. */
const MAX_HELD_BYTES = 256 * 1024 * 1024;

/** 64 MiB: counting tokens is free of charge, and costs the provider as much as a prefill. */
const COUNT_TOKENS_BYTES_PER_MINUTE = 64 * 1024 * 1024;

/** 10,000 USD per million tokens and 1000 USD per image, as for prices set through the API. */
const MAX_RATE = 10_000_000_000;
const MAX_IMAGE_RATE = 1_000_000_000;
const MAX_RETENTION_DAYS = 36_500;
/** As the ledger keeps days (`database/ledger/activity`). */
const MAX_MATURITY_DAYS = 365;
/** A week. */
const MAX_IMAGE_URL_SECONDS = 604_800;
const MAX_IMAGE_STORE_MB = 2 ** 24;
/** Clients and proxies give up on slower responses. */
const MAX_IMAGE_QUEUE_SECONDS = 600;

function readConsole(env: Env): ConsoleConfig {
  const mailUrl = httpUrl(env, 'MAIL_URL');
  const config = {
    publicOrigin: origin(env, 'PUBLIC_URL'),
    authSecret: secret(env, 'AUTH_SECRET', /^.{32,}$/, 'at least 32 characters'),
    requireEmailVerification: flag(env, 'REQUIRE_EMAIL_VERIFICATION'),
    mail: mailUrl === null ? null : { url: mailUrl, token: secret(env, 'MAIL_TOKEN', /^\S+$/, 'a token without spaces') },
    adminKey: secret(env, 'ADMIN_KEY', /^service-[A-Za-z0-9_-]{43}$/, 'service- and 43 letters, digits, dashes and underscores'),
  };
  if (config.requireEmailVerification && config.mail === null && !flag(env, 'DEVELOPMENT')) {
    throw new StartupError('REQUIRE_EMAIL_VERIFICATION needs MAIL_URL, or nobody could sign in.');
  }
  return config;
}

function readStripe(env: Env): StripeConfig | null {
  const secretKey = secret(env, 'STRIPE_SECRET_KEY', /^\S+$/, "Stripe's secret key");
  const webhookSecret = secret(env, 'STRIPE_WEBHOOK_SECRET', /^\S+$/, 'the signing secret of the webhook');
  if (secretKey === null && webhookSecret === null) return null;
  if (secretKey === null || webhookSecret === null) {
    throw new StartupError('STRIPE_SECRET_KEY and STRIPE_WEBHOOK_SECRET must be set together.');
  }
  return { secretKey, webhookSecret, apiUrl: httpUrl(env, 'STRIPE_API_URL') };
}

type Env = Readonly<Record<string, string | undefined>>;

function text(env: Env, name: string, fallback: string): string {
  const value = env[name];
  return value === undefined || value === '' ? fallback : value;
}

function integer(env: Env, name: string, fallback: number, min: number, max: number): number {
  const value = env[name];
  if (value === undefined || value === '') return fallback;
  const number = Number(value);
  if (!/^\d+$/.test(value) || number < min || number > max) {
    throw new StartupError(`${name} must be a whole number from ${min} to ${max}, not "${value}".`);
  }
  return number;
}

/** The value may contain a password, so error messages do not repeat the value. */
function postgresUrl(env: Env, name: string): string | null {
  const value = env[name];
  if (value === undefined || value === '') return null;
  if (/^postgres(ql)?:\/\//.test(value) && URL.canParse(value)) return value;
  throw new StartupError(`${name} must look like postgres://user:password@host:5432/database.`);
}

/** No message repeats the value. */
function secret(env: Env, name: string, pattern: RegExp, what: string): string | null {
  const value = env[name];
  if (value === undefined || value === '') return null;
  if (!pattern.test(value)) throw new StartupError(`${name} must be ${what}.`);
  return value;
}

function httpUrl(env: Env, name: string): string | null {
  const value = env[name];
  if (value === undefined || value === '') return null;
  if (/^https?:\/\//.test(value) && URL.canParse(value)) return value;
  throw new StartupError(`${name} must be an address that begins with http:// or https://.`);
}

function origin(env: Env, name: string): string | null {
  const value = httpUrl(env, name);
  if (value === null) return null;
  const url = new URL(value);
  if (url.pathname === '/' && url.search === '' && url.hash === '' && url.username === '') return url.origin;
  throw new StartupError(`${name} must be an address without a path, such as https://gateway.example.`);
}

function addressRanges(env: Env, name: string): string[] {
  const ranges = text(env, name, '')
    .split(',')
    .map((range) => range.trim())
    .filter((range) => range !== '');
  for (const range of ranges) {
    const [address = '', bits] = range.split('/');
    const version = isIP(address);
    const good = version !== 0 && (bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128)));
    if (!good) throw new StartupError(`${name} must be addresses or ranges such as 10.0.0.0/8, separated by commas, not "${range}".`);
  }
  return ranges;
}

function flag(env: Env, name: string): boolean {
  const value = env[name];
  if (value === undefined || value === '' || value === '0' || value === 'false') return false;
  if (value === '1' || value === 'true') return true;
  throw new StartupError(`${name} must be 1 or 0, not "${value}".`);
}

function choice<T extends string>(env: Env, name: string, allowed: readonly T[], fallback: T): T {
  const value = env[name];
  if (value === undefined || value === '') return fallback;
  const found = allowed.find((one) => one === value);
  if (found === undefined) throw new StartupError(`${name} must be one of ${allowed.join(', ')}, not "${value}".`);
  return found;
}
