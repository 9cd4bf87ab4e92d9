/** Routes for operators that export and close an account: `GET /admin/v1/accounts/{id}/export`, `DELETE /admin/v1/accounts/{id}`. */
import { AdminAccountSchema, RequestError } from '@inference/formats';
import type { FastifyInstance } from 'fastify';
import { type CloseAccount, closeAccountOfUser } from '../../accounts/close-account.js';
import type { AccountRepository } from '../../database/accounts/account-repository.js';
import { SoleOwnerError } from '../../database/accounts/organisation-repository.js';
import { downloadSchema, JSON_TYPE, sendDownload } from '../plugins/downloads.js';
import { operatorOf } from '../plugins/guards.js';
import { pathParams } from '../plugins/route-schemas.js';
import type { ExportOf } from './account-export.js';
import { accountBody, existingAccount, openAccount } from './admin-account-body.js';

interface AdminAccountData {
  readonly accounts: AccountRepository;
  readonly closeAccount: CloseAccount;
  readonly exportOf: ExportOf;
  readonly now: () => number;
}

interface ById {
  readonly Params: { readonly id: string };
}

export function addAdminAccountData(server: FastifyInstance, { accounts, closeAccount, exportOf, now }: AdminAccountData): void {
  const params = pathParams('id');
  const onRequest = server.guards.admin;

  const exportSchema = { params, ...downloadSchema([JSON_TYPE]) };
  const exportRoute = { onRequest, schema: exportSchema, config: { isAudited: true } };
  server.get<ById>('/admin/v1/accounts/:id/export', exportRoute, async (request, reply) => {
    const { id } = await existingAccount(accounts, request.params.id);
    return sendDownload(reply, { name: `account-${id}.json`, type: JSON_TYPE, parts: exportOf(id) });
  });

  const schema = { params, response: { 200: AdminAccountSchema } };
  server.delete<ById>('/admin/v1/accounts/:id', { onRequest, schema }, async (request) => {
    const { id, isOrganisation } = await openAccount(accounts, request.params.id);
    if (operatorOf(request) === `account:${id}`) {
      throw new RequestError('conflict', null, 'Delete your own account on your account page.');
    }
    // Closing an organisation also erases its members, invitations and log.
    if (isOrganisation) await closeAccount(id, async () => {});
    else await closePerson(closeAccount, id, now());
    return accountBody(await existingAccount(accounts, id));
  });
}

async function closePerson(closeAccount: CloseAccount, id: string, now: number): Promise<void> {
  try {
    await closeAccountOfUser(closeAccount, id, now);
  } catch (error) {
    if (!(error instanceof SoleOwnerError)) throw error;
    const message = `The person is the only owner of ${error.organisations.join(', ')}. Delete these organisations first.`;
    throw new RequestError('conflict', null, message);
  }
}
