/** Test harness: a coordinator inside the test process, on a free port, with a new data directory and a log in memory. */
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { type App, type AppOptions, startApp } from '../../src/app.js';
import type { Ledger } from '../../src/billing/ledger/ledger.js';
import { microUsd } from '../../src/billing/micro-usd.js';
import { type Config, readConfig } from '../../src/config/config.js';
import { addKey, createAccount, findKey, hashKey, newKeyText } from '../../src/database/accounts/api-key-repository.js';
import { createLog } from '../../src/log.js';
import { DATABASE_PARENT } from './database-directory.js';
import { migratedFile } from './fresh-database.js';
import { type ProviderOptions, ScriptedProvider } from './scripted-provider.js';

export const MODEL = 'test/model-1';
/** Cheap password hashing: the default cost takes 85 ms of processor time per sign-up and sign-in. */
const PASSWORD_COST = 2;
export const NO_RATE_LIMITS = { keyPerMinute: 0, addressPerMinute: 0, badKeysPerMinute: 0, authPerMinute: 0, emailPerQuarterHour: 0 };

/** Replaces the built console, whose many routes take a third of the start time. */
const CONSOLE_DIR = fileURLToPath(new URL('console', import.meta.url));

export interface Customer {
  readonly accountId: string;
  readonly apiKey: string;
}

export interface Harness {
  readonly app: App;
  readonly url: string;
  readonly apiKey: string;
  readonly adminKey: string;
  readonly dataDir: string;
  readonly log: string[];
  provider(options?: ProviderOptions): Promise<ScriptedProvider>;
  /** POST /v1/chat/completions with a small default body. */
  chat(body?: Record<string, unknown>, init?: { headers?: Record<string, string>; signal?: AbortSignal }): Promise<Response>;
  /** Posts a body to any path, with the API key in `x-api-key`, as Anthropic clients send it. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Response>;
  get(path: string, key?: string | null): Promise<Response>;
  readonly developer: Customer;
  /** Creates an account with a balance in micro-USD. */
  customer(amount: number): Promise<Customer>;
  /** Creates another API key of an account. */
  addKey(accountId: string): Promise<string>;
  /** Balance and reservations of an account, in micro-USD. Default: the developer's account. */
  money(accountId?: string): Promise<{ balance: number; reserved: number }>;
  /** Log lines of jobs. */
  jobLines(): Record<string, unknown>[];
  /** Resolves once the condition holds; rejects after a minute. */
  until(condition: () => boolean | Promise<boolean>): Promise<void>;
  close(): Promise<void>;
}

export type HarnessOptions = Partial<Omit<AppOptions, 'config'>> & { config?: Partial<Config> };

/** With `HARNESS=cluster`, every provider connects to a second coordinator of the same network. */
export async function startHarness(options: HarnessOptions = {}): Promise<Harness> {
  if (process.env.HARNESS !== 'cluster') return startCoordinator(options);
  const { startClusterHarness } = await import('./cluster-harness.js');
  return startClusterHarness(options);
}

/** One coordinator, regardless of `HARNESS`. */
export async function startCoordinator(options: HarnessOptions = {}): Promise<Harness> {
  const dataDir = options.config?.dataDir ?? temporaryDirectory('coordinator-test', DATABASE_PARENT);
  const log: string[] = [];
  const { config, ...rest } = options;
  if ((config?.databaseUrl ?? null) === null) await addMigratedDatabase(dataDir);
  const app = await startApp({
    log: createLog('trace', { write: (line: string) => void log.push(line) }),
    passwordCost: PASSWORD_COST,
    ...rest,
    // Longer than `until` waits, so that only a provider's report frees the slot of a cancelled job. Tests may override.
    providerTimings: { cancelConfirmMs: 600_000, ...rest.providerTimings },
    config: { ...readConfig({ PORT: '0', DEVELOPMENT: '1', ALLOW_SIMULATED_ENCLAVE: '1', DATA_DIR: dataDir, CONSOLE_DIR }), ...config },
  });
  const apiKey = app.developmentKeys?.api_key ?? '';
  const adminKey = app.developmentKeys?.admin_key ?? '';
  const providers: ScriptedProvider[] = [];
  const developer = { accountId: (await findKey(app.database, hashKey(apiKey)))?.accountId ?? '', apiKey };
  const newKey = async (accountId: string): Promise<string> => {
    const text = newKeyText();
    await addKey(app.database, { accountId, kind: 'api', text, now: Date.now() });
    return text;
  };
  return {
    app,
    url: app.address,
    apiKey,
    adminKey,
    dataDir,
    log,
    async provider(providerOptions = {}) {
      const provider = await ScriptedProvider.connect(app.address, { models: [MODEL], ...providerOptions });
      providers.push(provider);
      return provider;
    },
    chat: (body = {}, init = {}) =>
      fetch(`${app.address}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json', ...init.headers },
        body: JSON.stringify({ model: MODEL, messages: [{ role: 'user', content: 'hi' }], ...body }),
        ...(init.signal === undefined ? {} : { signal: init.signal }),
      }),
    post: (path, body, headers = {}) =>
      fetch(app.address + path, {
        method: 'POST',
        headers: { 'x-api-key': apiKey, 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    get: (path, key = apiKey) => fetch(app.address + path, key === null ? {} : { headers: { authorization: `Bearer ${key}` } }),
    developer,
    async customer(amount) {
      const accountId = await createAccount(app.database, 'customer', Date.now());
      const deposit = { eventId: `test:${accountId}`, accountId, amount: microUsd(amount), source: 'admin', at: Date.now() } as const;
      if (amount > 0) await app.ledger.deposit(deposit);
      return { accountId, apiKey: await newKey(accountId) };
    },
    addKey: newKey,
    async money(accountId = developer.accountId) {
      const { balance, reserved } = await app.ledger.balance(accountId);
      return { balance, reserved };
    },
    jobLines: () => log.map((line) => JSON.parse(line)).filter((line) => line.msg === 'job'),
    until,
    async close() {
      for (const provider of providers) provider.close();
      await app.close(200);
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** Copies a migrated database, because migrations take most of a coordinator's start time. */
async function addMigratedDatabase(dataDir: string): Promise<void> {
  const directory = join(dataDir, 'coordinator');
  const file = join(directory, 'coordinator.db');
  if (existsSync(file)) return;
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  writeFileSync(file, await migratedFile());
}

/** Pauses between two looks at a condition, in milliseconds. Long waits get longer ones: a look is often an HTTP request. */
const MIN_PAUSE_MS = 10;
const MAX_PAUSE_MS = 50;

/** Waits at most `ms` milliseconds. The default is long, because test machines may be busy. */
export async function until(condition: () => boolean | Promise<boolean>, ms = 60_000): Promise<void> {
  const start = Date.now();
  while (!(await condition())) {
    const waitedMs = Date.now() - start;
    if (waitedMs > ms) throw new Error('the condition did not come true in time');
    const pauseMs = Math.min(Math.max(waitedMs / 20, MIN_PAUSE_MS), MAX_PAUSE_MS);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

/** The error body of an OpenAI-style answer. */
export async function errorOf(response: Response): Promise<{ message: string; type: string; param: string | null; code: string }> {
  return ((await response.json()) as { error: { message: string; type: string; param: string | null; code: string } }).error;
}

/** A ledger with some steps replaced. */
export function ledgerWith(ledger: Ledger, steps: Partial<Ledger>): Ledger {
  return {
    reserve: (reservation) => ledger.reserve(reservation),
    takeNonce: (nonce) => ledger.takeNonce(nonce),
    settle: (settlement) => ledger.settle(settlement),
    release: (jobId, at) => ledger.release(jobId, at),
    deposit: (deposit) => ledger.deposit(deposit),
    requestWithdrawal: (request) => ledger.requestWithdrawal(request),
    endWithdrawal: (id, end, at) => ledger.endWithdrawal(id, end, at),
    balance: (accountId) => ledger.balance(accountId),
    pendingEarnings: (accountId) => ledger.pendingEarnings(accountId),
    linkProvider: (providerId, accountId, at) => ledger.linkProvider(providerId, accountId, at),
    sweep: (liveJobs, reservedBefore) => ledger.sweep(liveJobs, reservedBefore),
    close: () => ledger.close(),
    ...steps,
  };
}
