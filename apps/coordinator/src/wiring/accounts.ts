/**
 * Wires what people sign in to: accounts and sessions, the console API, payments and the admin API. Called once by app.ts,
 * which owns the database, the ledger and the server.
 */
import type { ProviderStatusAnswer } from '@inference/protocol';
import type { FastifyInstance, onRequestHookHandler } from 'fastify';
import { COOKIE_PREFIX, createAuth, MIN_PASSWORD_LENGTH } from '../accounts/auth.js';
import { revokeResetLinks, startSessionCleanup } from '../accounts/expired-sessions.js';
import { KnownBrowsers } from '../accounts/known-browsers.js';
import { developmentMailer, httpMailer, type Mailer } from '../accounts/mailer.js';
import { MAX_HASHES_AT_ONCE, PasswordHasher } from '../accounts/passwords/password-hasher.js';
import { SignInQueue } from '../accounts/passwords/sign-in-queue.js';
import type { ProviderLinks } from '../accounts/provider-links.js';
import { SessionReader } from '../accounts/sessions.js';
import type { Ledger } from '../billing/ledger/ledger.js';
import { Deposits } from '../billing/payments/deposits.js';
import type { PaymentProcessor } from '../billing/payments/payment-processor.js';
import type { StripeSettings } from '../billing/payments/stripe-processor.js';
import { Withdrawals } from '../billing/payments/withdrawals.js';
import type { Config } from '../config/config.js';
import { AccountRepository } from '../database/accounts/account-repository.js';
import { DeviceCodeRepository } from '../database/accounts/device-code-repository.js';
import { OwnedKeyRepository } from '../database/accounts/owned-key-repository.js';
import { PlaygroundKeyRepository } from '../database/accounts/playground-key-repository.js';
import { PaymentRepository } from '../database/payment-repository.js';
import type { LastSeenRepository } from '../database/providers/last-seen-repository.js';
import { MachineCodeRepository } from '../database/providers/machine-code-repository.js';
import { OwnedProviderRepository } from '../database/providers/owned-provider-repository.js';
import type { Database } from '../database/tables.js';
import { errorFacts, type Log } from '../log.js';
import type { ProviderRegistry } from '../providers/provider-registry.js';
import type { OnlineSession } from '../providers/session/provider-session.js';
import { addAdminRoutes } from '../routes/accounts/admin-accounts.js';
import { addKeyRoutes } from '../routes/accounts/api-keys.js';
import { addOAuth } from '../routes/accounts/device-authorization.js';
import { addDeviceCodeRoutes } from '../routes/accounts/device-codes.js';
import { addMeRoutes, addSession, addSettings } from '../routes/accounts/me.js';
import { addPlaygroundKey } from '../routes/accounts/playground-key.js';
import { addAuthRoutes } from '../routes/accounts/sign-in.js';
import { addMoneyRoutes, MIN_DEPOSIT_MICRO_USD, MIN_WITHDRAWAL_MICRO_USD } from '../routes/billing/console-billing.js';
import { addUsageRoutes } from '../routes/billing/console-usage.js';
import { addMachineEarnings } from '../routes/billing/provider-earnings.js';
import { addPaymentWebhook } from '../routes/billing/stripe-webhook.js';
import type { ApiKeyAuth } from '../routes/plugins/api-key-auth.js';
import { ConsoleApi } from '../routes/plugins/console-api.js';
import { requireAccount, requireAdmin } from '../routes/plugins/role-guards.js';
import { addMachineView } from '../routes/providers/owned-provider.js';
import { addMachineRoutes } from '../routes/providers/owned-providers.js';
import type { Metrics } from '../telemetry/metrics.js';
import { readPasswords } from '../telemetry/password-gauges.js';

export interface AccountsOptions {
  readonly server: FastifyInstance;
  readonly config: Config;
  /** Signs session cookies. */
  readonly authSecret: string;
  readonly database: Database;
  readonly ledger: Ledger;
  readonly fleet: ProviderRegistry;
  readonly lastSeen: LastSeenRepository;
  /** What a connected provider is told about itself. */
  readonly statusOf: (session: OnlineSession) => Promise<ProviderStatusAnswer>;
  readonly machineLinks: ProviderLinks;
  readonly linkPollMs?: number | undefined;
  readonly keys: ApiKeyAuth;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly now: () => number;
}

export interface AccountServices {
  /** Guards what operators may do. */
  readonly adminGuard: onRequestHookHandler;
  /** Links machines; the provider gate redeems them. */
  readonly machineCodes: MachineCodeRepository;
  readonly accounts: AccountRepository;
  readonly machines: OwnedProviderRepository;
  /** Guards what an account may read of its own: by key, or signed in. */
  readonly accountGuard: onRequestHookHandler;
  close(): Promise<void>;
}

export async function openAccounts(parts: AccountsOptions): Promise<AccountServices> {
  const { server, config, database, ledger, keys, log, now } = parts;
  const { limits } = keys;
  const mailer = mailerOf(config, log);
  const accounts = new AccountRepository({ database, now, onChange: (id) => keys.apiKeyCache.forget((key) => key.accountId === id) });
  const playgroundKeys = new PlaygroundKeyRepository({ database, apiKeyCache: keys.apiKeyCache, now });
  const passwords = new PasswordHasher();
  const signInQueue = new SignInQueue({ maxRunning: MAX_HASHES_AT_ONCE });
  readPasswords(parts.metrics, passwords, signInQueue);
  const isHttps = config.console.publicOrigin?.startsWith('https://') ?? false;
  const devices = new KnownBrowsers({ secret: parts.authSecret, cookiePrefix: COOKIE_PREFIX, isHttps });
  const auth = createAuth({
    database,
    passwords,
    secret: parts.authSecret,
    publicUrl: config.console.publicOrigin,
    mailer,
    requireEmailVerification: config.console.requireEmailVerification,
    onSignUp: async (user) => void (await accounts.ensure(user)),
    onPasswordChange: async (id) => {
      await playgroundKeys.revokeAll(id);
      await revokeResetLinks(auth, id);
    },
    onDelete: async (id) => {
      await accounts.close(id);
      await parts.machineLinks.closeAccount(id);
    },
    onError: (error) => log.error({ error: errorFacts(error) }, 'mail failed'),
  });
  const door = { sessions: new SessionReader(auth, accounts), limits, publicOrigin: config.console.publicOrigin };
  const book = new PaymentRepository(database);
  const deposits = new Deposits({ book, ledger, accounts, now });
  const withdrawals = new Withdrawals({ book, ledger, now });
  const processor = config.stripe === null ? null : await openStripe(config.stripe, now);
  const machineCodes = new MachineCodeRepository({ database, now });
  const deviceCodes = new DeviceCodeRepository({ database, now, intervalMs: parts.linkPollMs });

  addAuthRoutes(server, { auth, door, queue: signInQueue, devices, mail: mailer !== null, log });
  addSettings(server, limits, {
    development: config.development,
    deposits: [...(processor === null ? [] : (['stripe'] as const)), ...(config.development ? (['development'] as const) : [])],
    payouts: processor !== null,
    mail: mailer !== null,
    mail_in_log: mailer !== null && config.console.mail === null,
    email_verification_required: config.console.requireEmailVerification,
    min_password_length: MIN_PASSWORD_LENGTH,
    min_deposit_micro_usd: MIN_DEPOSIT_MICRO_USD,
    min_withdrawal_micro_usd: MIN_WITHDRAWAL_MICRO_USD,
  });
  addSession(server, door);
  const api = new ConsoleApi(server, door);
  addMeRoutes(api, auth, playgroundKeys);
  addPlaygroundKey(api, playgroundKeys);
  addKeyRoutes(api, new OwnedKeyRepository({ database, apiKeyCache: keys.apiKeyCache, now }), now);
  addMoneyRoutes(api, { database, ledger, book, deposits, withdrawals, processor, development: config.development, now, log });
  const machines = new OwnedProviderRepository(database);
  const { fleet, lastSeen, statusOf } = parts;
  addMachineRoutes(api, { machines, lastSeen, fleet, codes: machineCodes, links: parts.machineLinks });
  addMachineView(api, { fleet, machines, lastSeen, statusOf });
  addDeviceCodeRoutes(api, { codes: deviceCodes, now });
  addMachineEarnings(server, { database, ledger, limits, now });
  addOAuth(server, { codes: deviceCodes, links: parts.machineLinks, limits, publicOrigin: config.console.publicOrigin });
  addUsageRoutes(api, { database, now });
  const adminGuard = requireAdmin(keys, door);
  addAdminRoutes(server, adminGuard, { database, accounts, machines, book, deposits, withdrawals, ledger, processor, now, log });
  if (processor !== null) addPaymentWebhook(server, { processor, deposits, limits, log });

  const stopPruning = startSessionCleanup(auth, (error) =>
    log.error({ error: errorFacts(error) }, 'expired sessions could not be removed'),
  );
  return {
    adminGuard,
    accounts,
    machines,
    machineCodes,
    accountGuard: requireAccount(keys, door),
    close: async () => {
      await stopPruning();
      await passwords.close();
    },
  };
}

/** Loaded where it is used: the client of the payment provider is half of what a coordinator would load at its start. */
async function openStripe(settings: StripeSettings, now: () => number): Promise<PaymentProcessor> {
  const { StripeProcessor } = await import('../billing/payments/stripe-processor.js');
  return new StripeProcessor(settings, now);
}

function mailerOf(config: Config, log: Log): Mailer | null {
  if (config.console.mail !== null) return httpMailer(config.console.mail);
  if (!config.development) return null;
  return developmentMailer(({ kind, to, link }) => log.info({ kind, to, link }, 'mail'));
}
