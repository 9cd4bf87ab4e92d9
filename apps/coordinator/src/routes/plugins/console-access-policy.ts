/**
 * `ACCESS_POLICIES` lists the routes with the guards `session` or `account`. Each entry says for which account the route acts if the
 * request has a session, and which permission a member of an organisation needs.
 *
 * The plugin `guards` refuses to register such a route without an entry, so the coordinator does not start.
 */
import type { OrganisationAction, Permission } from '@inference/formats';
import type { FastifyRequest } from 'fastify';

export type AccessPolicy =
  /** The route acts for the signed-in person, whichever account is selected. */
  | { readonly acts: 'person' }
  | {
      /** `account`: a personal account or an organisation. `organisation`: personal accounts are refused. */
      readonly acts: 'account' | 'organisation';
      readonly permission: Permission;
      /** Action that `ConsoleApi` records in the organisation's log after a success. Absent: the handler records it, or nothing does. */
      readonly action?: OrganisationAction;
    };

const person: AccessPolicy = { acts: 'person' };
const account = (permission: Permission, action?: OrganisationAction): AccessPolicy => ({
  acts: 'account',
  permission,
  ...(action === undefined ? {} : { action }),
});
const organisation = (permission: Permission): AccessPolicy => ({ acts: 'organisation', permission });

const read = account('account.read');
const readBilling = account('billing.read');
const manage = organisation('organisation.manage');

export const ACCESS_POLICIES: Readonly<Record<string, AccessPolicy>> = {
  'GET /v1/models': read,
  'GET /v1/models/*': read,
  'GET /v1/receipts/:job_id': read,
  'GET /v1/payments/balance': read,
  'GET /v1/payments/usage': read,

  'GET /console/v1/me': person,
  'GET /console/v1/sessions': person,
  'DELETE /console/v1/sessions': person,
  'DELETE /console/v1/sessions/:id': person,
  'GET /console/v1/two-factor': person,
  'GET /console/v1/passkeys': person,
  'PATCH /console/v1/passkeys/:id': person,
  'POST /console/v1/organisations': person,
  'POST /console/v1/invitations/view': person,
  'POST /console/v1/invitations/accept': person,

  'POST /console/v1/account/export': account('account.export'),
  'GET /console/v1/account/export': account('account.export'),

  'GET /console/v1/keys': read,
  'POST /console/v1/keys': account('keys.write', 'key.created'),
  'PATCH /console/v1/keys/:id': account('keys.write', 'key.changed'),
  'DELETE /console/v1/keys/:id': account('keys.write', 'key.revoked'),
  'POST /console/v1/playground-key': account('keys.write'),
  // Revokes the person's playground keys of all accounts.
  'DELETE /console/v1/playground-key': person,

  'GET /console/v1/balance': read,
  'GET /console/v1/usage': read,
  'GET /console/v1/usage.csv': read,
  'GET /console/v1/usage/days': read,
  'GET /console/v1/usage/hours': read,
  'GET /console/v1/usage/failed': read,
  'GET /console/v1/usage/requests/:request_id': read,

  'GET /console/v1/deposits': readBilling,
  'POST /console/v1/deposits': account('billing.write', 'deposit.started'),
  'POST /console/v1/deposits/development': account('billing.write', 'deposit.started'),
  'GET /console/v1/deposits/:deposit_id': readBilling,
  'GET /console/v1/billing-details': readBilling,
  'PUT /console/v1/billing-details': account('billing.write', 'billing_details.changed'),
  'GET /console/v1/low-balance-alert': readBilling,
  'PUT /console/v1/low-balance-alert': account('billing.write', 'alert.changed'),
  'GET /console/v1/withdrawals': readBilling,
  'POST /console/v1/withdrawals': account('payouts.write', 'withdrawal.requested'),
  'POST /console/v1/payout-account': account('payouts.write', 'payout_account.opened'),

  'GET /console/v1/earnings/days': read,
  // The console calls a provider a machine.
  'GET /console/v1/machines': read,
  'GET /console/v1/machines/:provider_id': read,
  'PATCH /console/v1/machines/:provider_id': account('machines.write', 'machine.renamed'),
  'DELETE /console/v1/machines/:provider_id': account('machines.write', 'machine.unlinked'),
  'GET /console/v1/machines/:provider_id/commands': read,
  'POST /console/v1/machines/:provider_id/commands': account('machines.write', 'machine.controlled'),
  // A machine shows its device code to the person who links the machine to an account.
  'GET /console/v1/device-codes/:user_code': account('machines.write'),
  'POST /console/v1/device-codes/:user_code/approve': account('machines.write', 'machine.linked'),
  'POST /console/v1/device-codes/:user_code/deny': account('machines.write', 'machine.link_denied'),

  'GET /console/v1/organisation': organisation('account.read'),
  'PATCH /console/v1/organisation': manage,
  'DELETE /console/v1/organisation': organisation('organisation.delete'),
  'POST /console/v1/organisation/leave': organisation('account.read'),
  'GET /console/v1/organisation/members': organisation('account.read'),
  'PATCH /console/v1/organisation/members/:user_id': manage,
  'DELETE /console/v1/organisation/members/:user_id': manage,
  'GET /console/v1/organisation/invitations': manage,
  'POST /console/v1/organisation/invitations': manage,
  'POST /console/v1/organisation/invitations/:id/resend': manage,
  'DELETE /console/v1/organisation/invitations/:id': manage,
  'GET /console/v1/organisation/log': manage,
  'GET /console/v1/organisation/log/export': manage,
};

/** Policy of a route. HEAD has the policy of GET. Throws for a route without an entry. */
export function policyOf(method: string, url: string): AccessPolicy {
  const route = `${method === 'HEAD' ? 'GET' : method} ${url}`;
  const policy = ACCESS_POLICIES[route];
  if (policy === undefined) throw new Error(`${route} accepts a session, but ACCESS_POLICIES has no entry for it`);
  return policy;
}

/** Action of the policy of the request's route, or null. */
export function actionOf(request: FastifyRequest): OrganisationAction | null {
  const policy = policyOf(request.method, request.routeOptions.url ?? '');
  return policy.acts === 'person' ? null : (policy.action ?? null);
}
