/** Routes under `/admin/v1` for operators: accounts, two-factor resets, deposits, withdrawals, linking of providers. */
import {
  AdminAccountPageSchema,
  AdminAccountSchema,
  type AdminAccountView,
  AdminAccountViewSchema,
  AdminDepositPageSchema,
  AdminDepositSchema,
  ConsoleWithdrawalPageSchema,
  ConsoleWithdrawalSchema,
  EndWithdrawalSchema,
  LinkMachineSchema,
  RequestError,
  readJsonBody,
  schemaCheck,
  UpdateAccountSchema,
} from '@inference/formats';
import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify';
import Type, { type Static, type TSchema } from 'typebox';
import type { AccountNotices } from '../../accounts/account-notices.js';
import type { Ledger } from '../../billing/ledger/ledger.js';
import type { Deposits } from '../../billing/payments/deposits.js';
import type { PaymentProcessor } from '../../billing/payments/payment-processor.js';
import type { EndOutcome, Withdrawals } from '../../billing/payments/withdrawals.js';
import type { AccountRepository } from '../../database/accounts/account-repository.js';
import type { OrganisationRepository } from '../../database/accounts/organisation-repository.js';
import type { PlaygroundKeyRepository } from '../../database/accounts/playground-key-repository.js';
import type { SecondFactorRepository } from '../../database/accounts/second-factor-repository.js';
import type { PaymentRepository, Withdrawal } from '../../database/payment-repository.js';
import type { OwnedProviderRepository } from '../../database/providers/owned-provider-repository.js';
import { errorFacts, type Log } from '../../log.js';
import { depositBody, withdrawalBody } from '../billing/console-billing.js';
import { readPageQuery, readTextFilter, toPage } from '../parameters/pagination.js';
import { parseProviderId } from '../parameters/query.js';
import { MAX_CONSOLE_BODY_BYTES } from '../plugins/console-api.js';
import { consoleOrigin } from '../plugins/console-origin.js';
import { bytesOf } from '../plugins/request-bodies.js';
import { pathParams } from '../plugins/route-schemas.js';
import { accountBody, existingAccount, openAccount } from './admin-account-body.js';
import { adminMemberBody } from './organisation-bodies.js';

interface AdminRoutes {
  readonly accounts: AccountRepository;
  readonly secondFactors: SecondFactorRepository;
  readonly notices: AccountNotices;
  readonly playgroundKeys: Pick<PlaygroundKeyRepository, 'revokeAll'>;
  /** Configured origin of the console, or null. */
  readonly publicOrigin: string | null;
  readonly organisations: Pick<OrganisationRepository, 'members'>;
  readonly payments: PaymentRepository;
  readonly deposits: Deposits;
  readonly withdrawals: Withdrawals;
  readonly ledger: Pick<Ledger, 'balance' | 'linkProvider' | 'pendingEarnings'>;
  readonly ownedProviders: OwnedProviderRepository;
  readonly processor: PaymentProcessor | null;
  readonly now: () => number;
  readonly log: Log;
}

type Query = Readonly<Record<string, string | undefined>>;
const BY_ID = pathParams('id');

interface ById {
  readonly Params: { readonly id: string };
}

export function addAdminAccounts(server: FastifyInstance, routes: AdminRoutes): void {
  const options = { onRequest: server.guards.admin, bodyLimit: MAX_CONSOLE_BODY_BYTES };
  addAccounts(server, options, routes);
  addMoney(server, options, routes);
  addTwoFactorReset(server, options, routes);
  const linkOf = bodyReader(LinkMachineSchema);
  const linkSchema = {
    params: BY_ID,
    body: LinkMachineSchema,
    response: { 200: Type.Object({ provider_id: Type.String(), account_id: Type.String() }) },
  };
  server.post<ById>('/admin/v1/providers/:id/link', { ...options, schema: linkSchema }, async (request) => {
    const providerId = parseProviderId(request.params.id);
    const { account_id } = linkOf(request);
    await openAccount(routes.accounts, account_id);
    await routes.ledger.linkProvider(providerId, account_id, routes.now());
    return { provider_id: providerId, account_id };
  });
}

interface RouteOptions {
  readonly onRequest: onRequestHookHandler;
  readonly bodyLimit: number;
}

function addAccounts(
  server: FastifyInstance,
  options: RouteOptions,
  { accounts, organisations, playgroundKeys, secondFactors, ledger, ownedProviders }: AdminRoutes,
): void {
  server.get('/admin/v1/accounts', { ...options, schema: { response: { 200: AdminAccountPageSchema } } }, async (request) => {
    const query = request.query as Query;
    const { limit, after } = readPageQuery(query);
    const rows = await accounts.list({ text: readTextFilter(query, 'search'), limit: limit + 1, after });
    return toPage(rows, limit, (row) => ({ at: row.createdAt, id: row.id }), accountBody);
  });
  const viewSchema = { params: BY_ID, response: { 200: AdminAccountViewSchema } };
  server.get<ById>('/admin/v1/accounts/:id', { ...options, schema: viewSchema }, async (request): Promise<AdminAccountView> => {
    const account = await existingAccount(accounts, request.params.id);
    const { balance, reserved, withdrawable } = await ledger.balance(account.id);
    const { isTwoFactorEnabled, passkeyCount } = await secondFactors.find(account.id);
    return {
      ...accountBody(account),
      balance_micro_usd: balance,
      reserved_micro_usd: reserved,
      withdrawable_micro_usd: withdrawable,
      pending_micro_usd: (await ledger.pendingEarnings(account.id)).total,
      two_factor_enabled: isTwoFactorEnabled,
      passkey_count: passkeyCount,
      machines: (await ownedProviders.list(account.id)).map(({ providerId }) => providerId),
      members: account.isOrganisation ? (await organisations.members(account.id)).map(adminMemberBody) : [],
    };
  });
  const changeOf = bodyReader(UpdateAccountSchema);
  const updateSchema = { params: BY_ID, body: UpdateAccountSchema, response: { 200: AdminAccountSchema } };
  server.patch<ById>('/admin/v1/accounts/:id', { ...options, schema: updateSchema }, async (request) => {
    const { suspended, is_admin } = changeOf(request);
    const { id, isOrganisation } = await existingAccount(accounts, request.params.id);
    if (is_admin === true && isOrganisation) throw new RequestError('conflict', 'is_admin', 'An organisation cannot be an operator.');
    const change = { isSuspended: suspended, isAdmin: is_admin };
    // Also revokes the playground keys that the person created for organisations. The organisations are not suspended.
    if (suspended === true) await accounts.update(id, change, (write) => playgroundKeys.revokeAll(id, write));
    else if (suspended !== undefined || is_admin !== undefined) await accounts.update(id, change);
    return accountBody(await existingAccount(accounts, id));
  });
}

function addMoney(server: FastifyInstance, options: RouteOptions, routes: AdminRoutes): void {
  const { accounts, payments, deposits } = routes;
  const depositOf = bodyReader(AdminDepositSchema);
  const depositSchema = { params: BY_ID, body: AdminDepositSchema, response: { 201: AdminDepositPageSchema.properties.data.items } };
  server.post<ById>('/admin/v1/accounts/:id/deposits', { ...options, schema: depositSchema }, async (request, reply) => {
    const { amount_micro_usd, reference } = depositOf(request);
    const { id } = await openAccount(accounts, request.params.id);
    const order = await deposits.credit(`admin-${reference}`, id, amount_micro_usd, 'admin');
    if (order.accountId !== id || order.amount !== amount_micro_usd) {
      throw new RequestError('conflict', 'reference', 'This reference belongs to another deposit.');
    }
    reply.code(201);
    return { ...depositBody(order), account_id: order.accountId };
  });
  server.get('/admin/v1/deposits', { ...options, schema: { response: { 200: AdminDepositPageSchema } } }, async (request) => {
    const query = request.query as Query;
    const { limit, after } = readPageQuery(query);
    const orders = await payments.listOrders({ accountId: readTextFilter(query, 'account_id'), limit: limit + 1, after });
    return toPage(
      orders,
      limit,
      (order) => ({ at: order.createdAt, id: order.id }),
      (order) => ({ ...depositBody(order), account_id: order.accountId }),
    );
  });
  server.get('/admin/v1/withdrawals', { ...options, schema: { response: { 200: ConsoleWithdrawalPageSchema } } }, async (request) => {
    const query = request.query as Query;
    const { limit, after } = readPageQuery(query);
    const rows = await payments.listWithdrawals({
      accountId: readTextFilter(query, 'account_id'),
      state: withdrawalState(query.state),
      limit: limit + 1,
      after,
    });
    return toPage(rows, limit, (row) => ({ at: row.requestedAt, id: row.id }), withdrawalBody);
  });
  const endOf = bodyReader(EndWithdrawalSchema);
  const endSchema = { params: BY_ID, body: EndWithdrawalSchema, response: { 200: ConsoleWithdrawalSchema } };
  server.post<ById>('/admin/v1/withdrawals/:id/end', { ...options, schema: endSchema }, async (request) => {
    const { end } = endOf(request);
    return withdrawalBody(endedOf(await endWithdrawal(routes, request.params.id, end)));
  });
}

function addTwoFactorReset(server: FastifyInstance, options: RouteOptions, routes: AdminRoutes): void {
  const schema = { params: BY_ID, response: { 200: AdminAccountSchema } };
  server.delete<ById>('/admin/v1/accounts/:id/two-factor', { ...options, schema }, async (request) => {
    const account = await existingAccount(routes.accounts, request.params.id);
    if (!(await routes.secondFactors.disableTwoFactor(account.id))) {
      throw new RequestError('conflict', null, 'Two-factor authentication is not enabled for this account.');
    }
    const origin = consoleOrigin(request, routes.publicOrigin);
    if (account.email !== null && origin !== null) routes.notices.send('two_factor_reset', account.email, origin);
    return accountBody(account);
  });
}

async function endWithdrawal(routes: AdminRoutes, id: string, end: 'paid' | 'rejected' | 'transfer'): Promise<EndOutcome> {
  if (end !== 'transfer') return routes.withdrawals.end(id, end);
  if (routes.processor === null) throw new RequestError('not_configured', null, 'This coordinator has no payment service.');
  try {
    return await routes.withdrawals.transfer(id, routes.processor);
  } catch (error) {
    routes.log.error({ withdrawal: id, error: errorFacts(error) }, 'transfer failed');
    throw new RequestError(
      'payment_service_failed',
      null,
      'The result of the transfer is unknown. Send the request again: the transfer is made only once.',
    );
  }
}

function endedOf(outcome: EndOutcome): Withdrawal {
  switch (outcome.kind) {
    case 'ended':
      return outcome.withdrawal;
    case 'unknown':
      throw new RequestError('not_found', null, 'There is no such withdrawal.');
    case 'otherwise_ended':
      throw new RequestError('conflict', 'end', `This withdrawal was ended by ${outcome.end}.`);
    case 'no_payout_account':
      throw new RequestError('conflict', 'end', 'The account has no payout account at the payment service.');
    case 'transfer_refused':
      throw new RequestError('conflict', 'end', 'The payment service refused the transfer.');
    default:
      return outcome satisfies never;
  }
}

function bodyReader<Schema extends TSchema>(schema: Schema): (request: FastifyRequest) => Static<Schema> {
  const check = schemaCheck(schema);
  return (request) => check(readJsonBody(bytesOf(request)));
}

function withdrawalState(text: string | undefined): Withdrawal['state'] | null {
  if (text === undefined) return null;
  if (text === 'requested' || text === 'paid' || text === 'rejected') return text;
  throw new RequestError('invalid_request', 'state', 'state must be one of requested, paid and rejected.');
}
