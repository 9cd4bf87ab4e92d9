/**
 * `GET /v1/providers/attestation`: attestation records of connected providers (spec: provider attestation record). The response also
 * explains how to verify the records, and what they do not prove.
 */
import { documentedErrors } from '@inference/formats';
import { type AttestationFeed, AttestationFeedSchema, PROVIDER_ID_PATTERN, type ProviderId, ProviderIdSchema } from '@inference/protocol';
import type { FastifyInstance } from 'fastify';
import Type from 'typebox';
import type { NetworkViews } from '../../cluster/views.js';
import { newestRegistrations } from '../../providers/newest-registrations.js';
import type { ProviderRegistry } from '../../providers/provider-registry.js';
import type { TrustAnchor } from '../../providers/verification/chain/trust-anchor.js';
import { queryErrorExample, queryReader } from '../parameters/query.js';
import { addPublicRoute } from '../plugins/public-route.js';
import { jsonResponse } from '../plugins/route-schemas.js';
import { attestationRecord, publishedAnchor } from './attestation-record.js';
import { verificationInstructions } from './verification-instructions.js';

const ROOT_CA_URL = 'https://www.apple.com/certificateauthority/private/';
const ROOT_CA_NAME = 'Apple Enterprise Attestation Root CA';

const AttestationQuerySchema = Type.Object({
  provider_id: Type.Optional(
    Type.String({ pattern: PROVIDER_ID_PATTERN, description: 'a provider id: 32 digits of lowercase hexadecimal' }),
  ),
});
const readQuery = queryReader(AttestationQuerySchema);

const FeedQuerySchema = Type.Object({ provider_id: Type.Union([ProviderIdSchema, Type.Null()]) });
const FeedPartSchema = Type.Array(
  Type.Object({
    provider_id: ProviderIdSchema,
    registered_at: Type.Number(),
    record: AttestationFeedSchema.properties.providers.items,
  }),
);

interface AttestationRoutes {
  readonly registry: ProviderRegistry;
  readonly anchor: TrustAnchor;
  readonly views: NetworkViews;
}

export function addAttestation(server: FastifyInstance, { registry, anchor, views }: AttestationRoutes): void {
  const readFeed = views.define('attestation', { query: FeedQuerySchema, part: FeedPartSchema }, ({ provider_id: requestedId }) => {
    const providers = requestedId === null ? [...registry.snapshots()] : [registry.snapshot(requestedId) ?? []].flat();
    const { namesOf } = registry.models.listing();
    return providers.map((provider) => ({
      provider_id: provider.registration.identity.providerId,
      registered_at: provider.registration.registeredAt,
      record: attestationRecord(provider, namesOf(provider), anchor),
    }));
  });
  const instructions = verificationInstructions(anchor);
  const schema = {
    summary: 'Attestation records of every connected provider, or of one.',
    tags: ['Providers'],
    querystring: AttestationQuerySchema,
    response: {
      200: jsonResponse('Attestations'),
      ...documentedErrors(
        ['invalid_request', 'rate_limit_exceeded'],
        'OpenAiError',
        queryErrorExample(AttestationQuerySchema, 'provider_id'),
      ),
    },
  };
  addPublicRoute(server, '/v1/providers/attestation', schema, async (request): Promise<AttestationFeed> => {
    const { provider_id: requestedId } = readQuery(request.url);
    const parts = await readFeed({ provider_id: (requestedId as ProviderId | undefined) ?? null });
    return {
      providers: newestRegistrations(parts).map(({ record }) => record),
      apple_root_ca_url: ROOT_CA_URL,
      apple_enterprise_root_ca: ROOT_CA_NAME,
      verification_instructions: instructions,
      trust_anchor: publishedAnchor(anchor),
    };
  });
}
