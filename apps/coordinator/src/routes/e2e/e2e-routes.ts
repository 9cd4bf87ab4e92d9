/** Public routes of the end-to-end mode: the keyset (sealing keys of providers), and the attestation records that the keyset references. */
import { apiError, documentedErrors } from '@inference/formats';
import { E2eKeysetSchema, Sha256HexSchema } from '@inference/protocol';
import type { FastifyInstance, FastifyPluginAsync } from 'fastify';
import Type from 'typebox';
import type { NetworkViews } from '../../cluster/views.js';
import type { KeysetRepository } from '../../database/keyset-repository.js';
import { newestRegistrations } from '../../providers/newest-registrations.js';
import type { ProviderRegistry } from '../../providers/provider-registry.js';
import type { TrustAnchor } from '../../providers/verification/chain/trust-anchor.js';
import type { KeysetLog } from '../../transparency-log/transparency-log.js';
import { addPublicRoute } from '../plugins/public-route.js';
import { jsonResponse, pathParams } from '../plugins/route-schemas.js';
import { sendError } from '../plugins/send-error.js';
import { KEYSET_MAX_AGE_MS, KeysetPublisher } from './keyset-publisher.js';
import { KeysetEntriesSchema, LocalKeyset } from './local-keyset.js';

interface E2eRoutesDeps {
  readonly registry: ProviderRegistry;
  readonly anchor: TrustAnchor;
  readonly views: NetworkViews;
  readonly keysets: KeysetRepository;
  /** Transparency log, if any, that keysets are appended to. */
  readonly keysetLog: KeysetLog | null;
  readonly onLogError: (error: unknown) => void;
  readonly now: () => number;
}

export const E2E_SCHEMAS = { E2eKeyset: E2eKeysetSchema };

/** Records are addressed by hash, so a response never changes. */
const RECORD_CACHE = 'public, max-age=3600, immutable';
const SHA256_HEX = /^[0-9a-f]{64}$/;
const NO_RECORD = 'No current keyset names this record. Read the keyset again.';
const RecordQuerySchema = Type.Object({ sha256: Sha256HexSchema });
const RecordSchema = Type.Object({ text: Type.String({ maxLength: 1024 * 1024 }) });

export const e2eRoutes: FastifyPluginAsync<E2eRoutesDeps> = async (
  server,
  { registry, anchor, views, keysets, keysetLog, onLogError, now },
) => {
  const local = new LocalKeyset({ registry, anchor, log: keysetLog, onLogError, now });
  const readParts = views.define('e2e_keyset', { query: Type.Object({}), part: KeysetEntriesSchema }, () => local.entries());
  const publisher = new KeysetPublisher({
    repository: keysets,
    providers: async () => {
      const registered = newestRegistrations(await readParts({}));
      return {
        entries: registered.map(({ entry }) => entry),
        newestRegistrationAt: Math.max(...registered.map(({ registered_at }) => registered_at)),
      };
    },
    log: keysetLog,
    now,
  });
  addKeyset(server, publisher);
  addRecords(server, local, views);
};

function addKeyset(server: FastifyInstance, publisher: KeysetPublisher): void {
  const schema = {
    summary: 'Sealing keys of all providers that serve the end-to-end mode. The same bytes for everybody.',
    tags: ['Verification'],
    response: { 200: jsonResponse('E2eKeyset'), ...documentedErrors(['rate_limit_exceeded', 'overloaded']) },
  };
  addPublicRoute(server, '/v1/e2e/keyset', schema, async (request, reply) => {
    const { value, ageSeconds } = await publisher.current();
    reply.headers({ etag: value.etag, 'cache-control': `public, max-age=${KEYSET_MAX_AGE_MS / 1000}`, age: String(ageSeconds) });
    if (request.headers['if-none-match'] === value.etag) return reply.code(304).send();
    return reply.header('content-type', 'application/json; charset=utf-8').send(value.body);
  });
}

/** Serves the records that keysets reference. `/v1/providers/attestation` has only current records, which may be newer. */
function addRecords(server: FastifyInstance, local: LocalKeyset, views: NetworkViews): void {
  const find = views.defineLookup('e2e_record', { query: RecordQuerySchema, part: RecordSchema }, ({ sha256 }) => {
    const text = local.record(sha256);
    return text === null ? null : { text };
  });
  const schema = {
    summary: 'Attestation record that an entry of the keyset names by its SHA-256, as canonical JSON.',
    tags: ['Verification'],
    params: pathParams('record_sha256'),
    response: {
      200: { description: 'The record.', type: 'object' },
      ...documentedErrors(['not_found', 'rate_limit_exceeded'], 'OpenAiError', { not_found: { message: NO_RECORD } }),
    },
  };
  addPublicRoute(server, '/v1/e2e/records/:record_sha256', schema, async (request, reply) => {
    const { record_sha256: sha256 } = request.params as { record_sha256: string };
    const found = SHA256_HEX.test(sha256) ? await find({ sha256 }) : null;
    if (found === null) {
      sendError(reply, apiError('not_found', { message: NO_RECORD }));
      return reply;
    }
    return reply.headers({ 'content-type': 'application/json; charset=utf-8', 'cache-control': RECORD_CACHE }).send(found.text);
  });
}
