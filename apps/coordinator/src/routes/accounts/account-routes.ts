/** `accountRoutes` registers the routes of this folder: sign-in, sessions, OAuth, organisations, API keys, exports, and admin routes. */
import type { ConsoleSettings } from '@inference/formats';
import type { FastifyPluginAsync } from 'fastify';
import type { AccountNotices } from '../../accounts/account-notices.js';
import type { Auth } from '../../accounts/auth.js';
import type { CloseAccount } from '../../accounts/close-account.js';
import type { ExportGrants } from '../../accounts/export-grants.js';
import type { KnownBrowsers } from '../../accounts/known-browsers.js';
import type { Mailer } from '../../accounts/mailer.js';
import type { SignInQueue } from '../../accounts/passwords/sign-in-queue.js';
import type { ProviderLinks } from '../../accounts/provider-links.js';
import type { Ledger } from '../../billing/ledger/ledger.js';
import type { Deposits } from '../../billing/payments/deposits.js';
import type { PaymentProcessor } from '../../billing/payments/payment-processor.js';
import type { Withdrawals } from '../../billing/payments/withdrawals.js';
import type { AccountRepository } from '../../database/accounts/account-repository.js';
import type { DeviceCodeRepository } from '../../database/accounts/device-code-repository.js';
import type { InvitationRepository } from '../../database/accounts/invitation-repository.js';
import type { LowBalanceRepository } from '../../database/accounts/low-balance-repository.js';
import type { OrganisationLog } from '../../database/accounts/organisation-log.js';
import type { OrganisationRepository } from '../../database/accounts/organisation-repository.js';
import type { OwnedKeyRepository } from '../../database/accounts/owned-key-repository.js';
import type { PlaygroundKeyRepository } from '../../database/accounts/playground-key-repository.js';
import type { SecondFactorRepository } from '../../database/accounts/second-factor-repository.js';
import type { PaymentRepository } from '../../database/payment-repository.js';
import type { OwnedProviderRepository } from '../../database/providers/owned-provider-repository.js';
import type { AttemptCounters } from '../../limits/attempt-counters.js';
import { errorFacts, type Log } from '../../log.js';
import { type ConsoleAccess, ConsoleApi } from '../plugins/console-api.js';
import { addAccountExport, type ExportOf } from './account-export.js';
import { addAdminAccountData } from './admin-account-data.js';
import { addAdminAccounts } from './admin-accounts.js';
import { addKeyRoutes, addPlaygroundKey } from './api-keys.js';
import { addOAuth } from './device-authorization.js';
import { addDeviceCodeRoutes } from './device-codes.js';
import { addInvitationRoutes } from './invitations.js';
import { addLowBalanceAlert } from './low-balance-alert.js';
import { addMeRoutes, addSession, addSettings } from './me.js';
import { addOrganisationRoutes } from './organisations.js';
import { addSecondFactorRoutes } from './passkeys.js';
import { addAuthRoutes } from './sign-in.js';

interface AccountRoutesDeps {
  readonly consoleAccess: ConsoleAccess;
  readonly auth: Auth;
  readonly accounts: AccountRepository;
  readonly ownedProviders: OwnedProviderRepository;
  readonly deviceCodes: DeviceCodeRepository;
  readonly accountKeys: OwnedKeyRepository;
  readonly playgroundKeys: PlaygroundKeyRepository;
  readonly signInQueue: SignInQueue;
  readonly knownBrowsers: KnownBrowsers;
  readonly notices: AccountNotices;
  readonly secondFactors: SecondFactorRepository;
  readonly attempts: AttemptCounters;
  readonly providerLinks: ProviderLinks;
  readonly organisations: OrganisationRepository;
  readonly organisationLog: OrganisationLog;
  readonly invitations: InvitationRepository;
  readonly closeAccount: CloseAccount;
  readonly exportGrants: ExportGrants;
  readonly exportOf: ExportOf;
  readonly mailer: Mailer | null;
  readonly lowBalanceAlerts: LowBalanceRepository | null;
  readonly ledger: Ledger;
  readonly payments: PaymentRepository;
  readonly deposits: Deposits;
  readonly withdrawals: Withdrawals;
  readonly processor: PaymentProcessor | null;
  readonly settings: ConsoleSettings;
  readonly log: Log;
  readonly now: () => number;
}

export const accountRoutes: FastifyPluginAsync<AccountRoutesDeps> = async (server, deps) => {
  const { consoleAccess, auth, accounts, ownedProviders, deviceCodes, playgroundKeys, providerLinks, settings, log, now } = deps;
  const { payments, deposits, withdrawals, processor, ledger } = deps;
  const { secondFactors, notices } = deps;
  const { publicOrigin } = consoleAccess;
  const { signInQueue: queue, knownBrowsers } = deps;
  addAuthRoutes(server, { auth, publicOrigin, queue, knownBrowsers, notices, canSendMail: settings.mail, log });
  addSettings(server, settings);
  addSession(server, consoleAccess);
  addOAuth(server, { codes: deviceCodes, links: providerLinks, publicOrigin });
  const api = new ConsoleApi(server);
  const { organisations } = deps;
  addMeRoutes(api, { auth, playgroundKeys, organisations });
  addSecondFactorRoutes(api, auth);
  addOrganisationRoutes(api, { organisations, log: deps.organisationLog, closeAccount: deps.closeAccount });
  addInvitationRoutes(api, {
    invitations: deps.invitations,
    organisations,
    attempts: deps.attempts,
    mailer: deps.mailer,
    onMailError: (error) => log.error({ error: errorFacts(error) }, 'mail failed'),
    now,
  });
  addAccountExport(server, api, {
    auth,
    grants: deps.exportGrants,
    queue: deps.signInQueue,
    attempts: deps.attempts,
    exportOf: deps.exportOf,
  });
  addPlaygroundKey(api, playgroundKeys);
  addLowBalanceAlert(api, deps.lowBalanceAlerts);
  addKeyRoutes(api, deps.accountKeys, now);
  addDeviceCodeRoutes(api, { codes: deviceCodes, attempts: deps.attempts });
  addAdminAccountData(server, { accounts, closeAccount: deps.closeAccount, exportOf: deps.exportOf, now });
  const money = { payments, deposits, withdrawals, ledger, processor };
  addAdminAccounts(server, {
    accounts,
    organisations,
    ownedProviders,
    playgroundKeys,
    secondFactors,
    notices,
    publicOrigin,
    ...money,
    now,
    log,
  });
};
