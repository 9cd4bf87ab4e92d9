/**
 * `/admin/v1/providers/{id}`: details of one provider for operators, and routes that begin and end a quarantine.
 *
 * Responses call a quarantine `hold`, and the reputation of an unrestricted provider `well`.
 */
import {
  AdminHoldSchema,
  AdminProviderListSchema,
  type AdminProviderView,
  AdminProviderViewSchema,
  apiError,
  QuarantineSchema,
  readJsonBody,
  schemaCheck,
} from '@inference/formats';
import { type ProviderId, ProviderIdSchema, type ProviderStatusAnswer } from '@inference/protocol';
import type { FastifyInstance } from 'fastify';
import Type from 'typebox';
import type { NetworkViews } from '../../cluster/views.js';
import type { AccountRepository } from '../../database/accounts/account-repository.js';
import type { LastSeenRepository } from '../../database/providers/last-seen-repository.js';
import type { OwnedProviderRepository } from '../../database/providers/owned-provider-repository.js';
import type { QuarantineRepository } from '../../database/providers/quarantine-repository.js';
import type { ProviderRegistry } from '../../providers/provider-registry.js';
import { parseProviderId } from '../parameters/query.js';
import { operatorOf } from '../plugins/guards.js';
import { bytesOf } from '../plugins/request-bodies.js';
import { pathParams } from '../plugins/route-schemas.js';
import { sendError } from '../plugins/send-error.js';
import { adminProviderBody, quarantineBody, quarantineBodyOrNull, reputationBody } from './admin-providers.js';
import { lastSeenBody } from './owned-provider.js';

interface AdminProviderDeps {
  readonly registry: ProviderRegistry;
  readonly quarantines: QuarantineRepository;
  readonly ownedProviders: OwnedProviderRepository;
  readonly accounts: AccountRepository;
  readonly lastSeen: LastSeenRepository;
  /** Status as in `GET /v1/providers/me`. Null while disconnected. */
  readonly statusOf: (providerId: ProviderId) => Promise<ProviderStatusAnswer | null>;
  readonly views: NetworkViews;
}

const AdminProviderSchema = AdminProviderListSchema.properties.providers.items;
const BY_ID = pathParams('id');

interface ById {
  readonly Params: { readonly id: string };
}

const MAX_BODY_BYTES = 4096;
const quarantineSchema = {
  params: BY_ID,
  body: QuarantineSchema,
  response: { 200: Type.Object({ provider_id: Type.String(), hold: AdminHoldSchema }) },
};
const releaseSchema = { params: BY_ID, response: { 200: Type.Object({ provider_id: Type.String(), released: Type.Literal(true) }) } };
const checkQuarantine = schemaCheck(QuarantineSchema);

export function addAdminProvider(server: FastifyInstance, deps: AdminProviderDeps): void {
  const { registry, quarantines, views } = deps;
  // Asks peers if the provider is not connected here. `part` is the schema of an answer.
  const findProvider = views.defineLookup('admin-provider', { query: ProviderIdSchema, part: AdminProviderSchema }, (id) => {
    const provider = registry.snapshot(id);
    return provider === null ? null : adminProviderBody(registry, quarantines, provider);
  });
  const options = { onRequest: server.guards.admin, bodyLimit: MAX_BODY_BYTES };

  server.get<ById>(
    '/admin/v1/providers/:id',
    { ...options, schema: { params: BY_ID, response: { 200: AdminProviderViewSchema } } },
    async (request, reply) => {
      const view = await viewOf(deps, parseProviderId(request.params.id));
      if (view === null) return sendError(reply, apiError('not_found', { message: 'Nothing is known of this provider.' }));
      return view;
    },
  );

  server.post<ById>('/admin/v1/providers/:id/quarantine', { ...options, schema: quarantineSchema }, async (request) => {
    const id = parseProviderId(request.params.id);
    const { reason } = checkQuarantine(readJsonBody(bytesOf(request)));
    return { provider_id: id, hold: quarantineBody(await quarantines.put(id, reason, operatorOf(request))) };
  });

  server.post<ById>('/admin/v1/providers/:id/release', { ...options, schema: releaseSchema }, async (request, reply) => {
    const id = parseProviderId(request.params.id);
    if (await quarantines.remove(id)) return { provider_id: id, released: true };
    return sendError(reply, apiError('not_found', { message: 'No operator has quarantined this provider.' }));
  });

  async function viewOf(
    { ownedProviders, accounts, lastSeen, statusOf }: AdminProviderDeps,
    id: ProviderId,
  ): Promise<AdminProviderView | null> {
    const [provider, accountId] = await Promise.all([findProvider(id), ownedProviders.ownerOf(id)]);
    const seen = (await lastSeen.of([id])).get(id) ?? null;
    // Other coordinators than that of the connection cache the reputation, and may have an older one.
    const reputation = provider?.reputation ?? reputationBody(registry.reputations.summaryOf(id));
    const quarantine = quarantines.of(id);
    if (provider === null && accountId === null && seen === null && quarantine === null && reputation.state === 'well') return null;
    // With the e-mail address of its user.
    const owner = accountId === null ? null : await accounts.findListed(accountId);
    return {
      provider_id: id,
      owner: accountId === null ? null : { account_id: accountId, email: owner?.email ?? null },
      provider,
      status: provider === null ? null : await statusOf(id),
      last_seen: seen === null ? null : lastSeenBody(seen),
      hold: quarantineBodyOrNull(quarantine),
      reputation,
    };
  }
}
