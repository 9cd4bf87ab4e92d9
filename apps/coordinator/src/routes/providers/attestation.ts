/**
 * `GET /v1/providers/attestation`: attestation records, the public evidence about connected providers (spec: provider attestation record).
 * The response also explains how to verify responses and records, and what is not proved.
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
  Type.Object({ provider_id: ProviderIdSchema, registered_at: Type.Number(), record: AttestationFeedSchema.properties.providers.items }),
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

const STEPS = [
  'A RESPONSE. Take the exact bytes of the body; of a stream, the bytes before the signature event (or before the comment ": inference-signature"), without lines that begin with ":" and the empty line after each. Refuse a stream with such a line inside an event.',
  'X-Response-Hash is their SHA-256 in hexadecimal. X-Se-Signature is an ECDSA P-256 SHA-256 signature (DER, base64) over the 64 ASCII digits of that hash, by se_public_key (base64 of the 65-byte x963 point) of the provider named in X-Provider-Id.',
  'X-Inference-Receipt is base64url of canonical JSON, signed by the same key over "inference/receipt/v1", a zero byte, and that JSON; it names the SHA-256 of your request, of the response, the usage, and your X-Inference-Nonce. Refuse one whose usage is not the one that the body reports. Version 2 also names the engine, the SHA-256 of the weights and of the chat template, and the sampling parameters.',
  'A PROVIDER. provider_id is the first 16 bytes of SHA-256(se_public_key) in hexadecimal. attestation_statement, key_statement and last_challenge.statement hold a base64 payload of canonical JSON and its signature by se_public_key over "inference/attestation/v1", "inference/key/v1" or "inference/challenge/v1", a zero byte, and the payload.',
  'The newest challenge answer (nonce and session_id as in last_challenge) states sip_enabled, secure_boot_enabled, authenticated_root_enabled and secure_enclave; attested says that it was answered in time with the protections on. key_statement binds the X25519 key that requests are sealed to, names the SHA-256 of the attestation payload and is valid from not_before to not_after; key_id is the first 8 bytes of SHA-256(x25519_public_key) in hexadecimal. Refuse an expired key.',
  'THE MANUFACTURER. Where mda_verified is true, decode mda_cert_chain_b64 (base64 of DER, leaf first) and verify the chain to trust_anchor, comparing that anchor with the root of apple_root_ca_url. The leaf states in extensions 1.2.840.113635.100.8.x: 9.1 serial number, 9.2 device identifier, 10.1 system, 10.2 enclave system, 11.1 freshness code, 13.1 system integrity protection (INTEGER 0 is enabled), 13.2 secure boot, 13.3 third-party kernel extensions (INTEGER 0 is not allowed).',
  'The freshness code must equal SHA-256("inference/mda/v1", a zero byte, the 65 bytes of se_public_key, mda_nonce_preimage.epoch as 8 bytes big-endian, the 16 bytes of mda_nonce_preimage.random): so the machine was asked for its attestation for this enclave key. mda_serial must equal serial_number.',
  'Where acme_verified is true, acme_attestation.cert_chain_b64 verifies the same way, and its freshness code is SHA-256 of acme_attestation.token.',
  'The program inference-verify does all of this: npx inference-verify network <this address>.',
] as const;

const NOT_PROVED = [
  'that the enclave key lives in the attested machine: the holder of the key may relay the attestation of another machine;',
  'which program runs on the machine, what it keeps in memory, and what it does with your prompt: agent hashes, and the engine and hashes of weights that a receipt names, are self-reported;',
  'mdm_verified, a statement of this coordinator about device management;',
  'that a challenge nonce was fresh when it was sent;',
  'that a certificate has not been revoked: Apple publishes no revocation for these;',
  'that the key is kept in a Secure Enclave, unless enclave_evidence is certified: secure_enclave and X-Provider-Secure-Enclave are a claim of the machine, which any program could make;',
  'with trust_level self_signed, anything about the machine beyond its own statements. secure_enclave false means that the key is in software.',
  'In plain mode, the coordinator itself sees requests and responses in its memory while it relays them.',
] as const;

/**
 * Text for people who verify responses and attestation records with their own tools (spec: `verification_instructions`).
 */
function verificationInstructions(anchor: TrustAnchor): string {
  const steps = STEPS.map((step, index) => `${index + 1}. ${step}`);
  const simulation = anchor.isSimulated
    ? [
        'NOTE: trust_anchor is a SIMULATED authority. Chains under it prove nothing about real machines, and trust_level hardware stands for a simulated machine.',
      ]
    : [];
  return [...simulation, ...steps, `NOT PROVED: ${NOT_PROVED.join(' ')}`].join('\n');
}
