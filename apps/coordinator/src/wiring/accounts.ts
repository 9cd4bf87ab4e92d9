/** `openAccounts` creates the services of accounts: sign-in, repositories of account data, alerts, payments and console access. */
import { join } from 'node:path';
import { type AccountNotices, accountNotices } from '../accounts/account-notices.js';
import { type Auth, COOKIE_PREFIX, createAuth, ensureAuthSecret, sharedAuthSecret } from '../accounts/auth.js';
import { accountCloser, type CloseAccount, closeOwnAccount } from '../accounts/close-account.js';
import { deleteVerifications, startSessionCleanup } from '../accounts/expired-sessions.js';
import { ExportGrants } from '../accounts/export-grants.js';
import { KnownBrowsers } from '../accounts/known-browsers.js';
import { developmentMailer, httpMailer, type Mailer, observedMailer } from '../accounts/mailer.js';
import { MAX_HASHES_AT_ONCE, PasswordHasher } from '../accounts/passwords/password-hasher.js';
import { SignInQueue } from '../accounts/passwords/sign-in-queue.js';
import type { ProviderLinks } from '../accounts/provider-links.js';
import { SessionReader } from '../accounts/sessions.js';
import { sendKeyBudgetAlerts, sendLowBalanceAlerts } from '../billing/alert-mails.js';
import type { Ledger } from '../billing/ledger/ledger.js';
import type { Config } from '../config/config.js';
import type { MailSettings } from '../config/mail.js';
import { AccountRepository } from '../database/accounts/account-repository.js';
import type { ApiKeyCache } from '../database/accounts/api-key-cache.js';
import { DeviceCodeRepository } from '../database/accounts/device-code-repository.js';
import { InvitationRepository } from '../database/accounts/invitation-repository.js';
import { KeyBudgetRepository } from '../database/accounts/key-budget-repository.js';
import { LowBalanceRepository } from '../database/accounts/low-balance-repository.js';
import { OrganisationLog } from '../database/accounts/organisation-log.js';
import { OrganisationRepository } from '../database/accounts/organisation-repository.js';
import { OwnedKeyRepository } from '../database/accounts/owned-key-repository.js';
import { PlaygroundKeyRepository } from '../database/accounts/playground-key-repository.js';
import { SecondFactorRepository } from '../database/accounts/second-factor-repository.js';
import { everyPeriod } from '../database/periodic-work.js';
import { eraseReceipts } from '../database/privacy/erase-account.js';
import { OwnedProviderRepository } from '../database/providers/owned-provider-repository.js';
import type { Database } from '../database/tables.js';
import type { AttemptCounter, AttemptCounters } from '../limits/attempt-counters.js';
import { errorFacts, type Log } from '../log.js';
import type { ConsoleAccess } from '../routes/plugins/console-api.js';
import { registerPasswordGauges } from '../telemetry/gauges.js';
import type { Metrics } from '../telemetry/metrics.js';
import { openPayments, type PaymentServices } from './billing.js';
import type { StartContext } from './start-context.js';

export interface AccountServices {
  readonly auth: Auth;
  readonly accounts: AccountRepository;
  readonly ownedProviders: OwnedProviderRepository;
  /** Codes of the OAuth device authorization grant (RFC 8628). The owner enters one in the console to link a provider. */
  readonly deviceCodes: DeviceCodeRepository;
  readonly accountKeys: OwnedKeyRepository;
  /** Short-lived API keys for the console's playground. */
  readonly playgroundKeys: PlaygroundKeyRepository;
  /** Limits concurrent requests that hash a password. */
  readonly signInQueue: SignInQueue;
  /** Cookies of browsers that have signed in before. */
  readonly knownBrowsers: KnownBrowsers;
  readonly secondFactors: SecondFactorRepository;
  /** E-mails about changes of a user's sign-in. */
  readonly notices: AccountNotices;
  readonly hasMailer: boolean;
  readonly mailer: Mailer | null;
  readonly organisations: OrganisationRepository;
  readonly organisationLog: OrganisationLog;
  readonly invitations: InvitationRepository;
  readonly closeAccount: CloseAccount;
  readonly exportGrants: ExportGrants;
  /** Null without a mail service or a console URL. */
  readonly lowBalanceAlerts: LowBalanceRepository | null;
  readonly payments: PaymentServices;
  readonly consoleAccess: ConsoleAccess;
}

const ALERTS_MS = 300_000;
/** Maximum receipts that the deletion of an account erases before its response. The retention job erases the rest. */
const MAX_RECEIPTS_AT_ONCE = 2000;

interface AccountDeps {
  readonly database: Database;
  readonly ledger: Ledger;
  readonly metrics: Metrics;
  readonly apiKeyCache: ApiKeyCache;
  readonly providerLinks: ProviderLinks;
  readonly attemptCounters: AttemptCounters;
}

export async function openAccounts(context: StartContext, deps: AccountDeps): Promise<AccountServices> {
  const { config, options, log, now, disposal } = context;
  const { database, ledger, metrics, apiKeyCache, providerLinks } = deps;
  const secret = config.console.authSecret ?? (await authSecret(context, database));
  const accounts = new AccountRepository({ database, now, onChange: (id) => apiKeyCache.changed(id) });
  const playgroundKeys = new PlaygroundKeyRepository({ database, apiKeyCache, now });
  const passwords = new PasswordHasher({ cost: options.passwordCost });
  disposal.defer(() => passwords.close());
  const signInQueue = new SignInQueue({ maxRunning: MAX_HASHES_AT_ONCE });
  registerPasswordGauges(metrics, passwords, signInQueue);
  const mailer = await createMailer(config, log, metrics);
  const lowBalanceAlerts = openAlerts(context, database, mailer);
  const onMailError = (error: unknown): void => log.error({ error: errorFacts(error) }, 'mail failed');
  const organisations = new OrganisationRepository({ database, apiKeyCache, now });
  const organisationLog = new OrganisationLog({ database, now });
  const closeAccount = accountCloser({
    accounts,
    providerLinks,
    eraseReceipts: (id) => eraseReceipts(database, id, { maxRows: MAX_RECEIPTS_AT_ONCE }),
    onError: context.onWriteError,
  });
  const auth = createAuth({
    database,
    passwords,
    secret,
    publicUrl: config.console.publicOrigin,
    mailer,
    requireEmailVerification: config.console.requireEmailVerification,
    onSignUp: async (user) => void (await accounts.ensure(user)),
    onPasswordChange: async (id) => {
      await playgroundKeys.revokeAll(id);
      await deleteVerifications(auth, id);
    },
    onDelete: (id) => closeOwnAccount(closeAccount, id, now()),
    secondSteps: secondStepLimit(config, deps.attemptCounters),
    onError: onMailError,
  });
  const cleanup = startSessionCleanup(auth, config.cluster === null ? null : database, (error) =>
    log.error({ error: errorFacts(error) }, 'expired sessions could not be removed'),
  );
  disposal.defer(cleanup);
  const isHttps = config.console.publicOrigin?.startsWith('https://') ?? false;
  return {
    auth,
    accounts,
    ownedProviders: new OwnedProviderRepository(database),
    deviceCodes: new DeviceCodeRepository({ database, now, intervalMs: options.linkPollMs }),
    accountKeys: new OwnedKeyRepository({ database, apiKeyCache, now }),
    playgroundKeys,
    signInQueue,
    knownBrowsers: new KnownBrowsers({ secret, cookiePrefix: COOKIE_PREFIX, isHttps }),
    secondFactors: new SecondFactorRepository(database),
    notices: accountNotices(mailer, onMailError),
    hasMailer: mailer !== null,
    mailer,
    organisations,
    organisationLog,
    invitations: new InvitationRepository({ database, now }),
    closeAccount,
    exportGrants: new ExportGrants({ secret, now }),
    lowBalanceAlerts,
    payments: await openPayments(context, { database, ledger, accounts, metrics }),
    consoleAccess: {
      sessions: new SessionReader(auth, accounts),
      organisations,
      organisationLog,
      onLogError: (error) => log.error({ error: errorFacts(error) }, 'an act was not written to the log of its organisation'),
      publicOrigin: config.console.publicOrigin,
    },
  };
}

const QUARTER_MS = 15 * 60_000;

/** Limit on second-factor codes per account. Undefined if the setting is 0. */
function secondStepLimit({ rateLimits }: Config, attemptCounters: AttemptCounters): AttemptCounter | undefined {
  const maxAttempts = rateLimits.emailPerQuarterHour;
  return maxAttempts === 0 ? undefined : attemptCounters.counter('second steps of an account', { maxAttempts, windowMs: QUARTER_MS });
}

function authSecret({ config, directory }: StartContext, database: Database): string | Promise<string> {
  const file = join(directory, 'auth-secret');
  return config.cluster === null ? ensureAuthSecret(file) : sharedAuthSecret(database, file);
}

/** Starts the alerts about balances and key budgets. Null without a mail service, or without a console URL to link to. */
function openAlerts({ config, log, now, disposal }: StartContext, database: Database, mailer: Mailer | null): LowBalanceRepository | null {
  const { publicOrigin } = config.console;
  if (mailer === null || publicOrigin === null) return null;
  const start = (name: string, work: () => Promise<void>): void => {
    const onError = (error: unknown): void => log.error({ error: errorFacts(error) }, `${name} failed`);
    disposal.defer(everyPeriod({ database, name, periodMs: ALERTS_MS, work, onError }));
  };
  const alerts = new LowBalanceRepository({ database, now });
  start('low-balance alerts', () => sendLowBalanceAlerts({ alerts, mailer, balancePage: `${publicOrigin}/balance` }));
  const budgets = new KeyBudgetRepository({ database, now });
  start('key-budget alerts', () => sendKeyBudgetAlerts({ budgets, mailer, keysPage: `${publicOrigin}/keys` }));
  return alerts;
}

/** In development mode without a mail service, e-mails are written to the log. */
async function createMailer({ development, console: { mail } }: Config, log: Log, metrics: Metrics): Promise<Mailer | null> {
  if (mail === null && !development) return null;
  const mailer = mail === null ? developmentMailer(({ kind, to, link }) => log.info({ kind, to, link }, 'mail')) : await mailerOf(mail);
  return observedMailer(mailer, (kind, outcome) => metrics.mail(kind, outcome));
}

async function mailerOf(mail: MailSettings): Promise<Mailer> {
  if (mail.kind === 'http') return httpMailer(mail);
  // Loaded on demand, because few development coordinators send e-mail.
  const { SmtpMailer } = await import('../accounts/smtp-mailer.js');
  return new SmtpMailer(mail);
}
