/**
 * Public attestation feed: claims about each provider, with the evidence for them.
 *
 * Anybody can recompute the claims that have evidence; others, such as `mdm_verified`, are only the coordinator's word. Readers must
 * ignore unknown members.
 */
import Type, { type Static } from 'typebox';
import { Base64Schema, MillisecondsSchema, ProviderIdSchema, Sha256HexSchema } from '../ids.js';
import { SignedStatementSchema } from '../statements/signed-statement.js';
import { NoncePreimageSchema } from './nonce-preimage.js';
import { PART_STATES, TRUST_PARTS, TRUST_REASONS } from './trust-parts.js';

/** Last answered challenge: the coordinator's nonce and session, and the signed response. */
const ChallengeTranscriptSchema = Type.Object({
  nonce: Base64Schema,
  session_id: Type.String({ maxLength: 64 }),
  statement: SignedStatementSchema,
  /** Coordinator's time, in milliseconds. */
  answered_at: MillisecondsSchema,
});
export type ChallengeTranscript = Static<typeof ChallengeTranscriptSchema>;

const chain = Type.Array(Base64Schema, { minItems: 1, maxItems: 4, description: 'base64 of DER, leaf first.' });

/** Evidence that a Secure Enclave holds the key. */
const EnclaveEvidenceSchema = Type.Union([Type.Literal('simulated'), Type.Literal('claimed'), Type.Literal('certified')], {
  description:
    '`certified`: a certificate chain of the manufacturer is bound to the key. `claimed`: only the machine says so. `simulated`: the key is in software, or its chain ends at a test authority.',
});
export type EnclaveEvidence = Static<typeof EnclaveEvidenceSchema>;

/** Statuses of a connected provider: `online`, or the lasting reason why the provider gets no requests. */
export const PROVIDER_STATUSES = [
  'online',
  'away',
  'draining',
  'cooling_down',
  'low_battery',
  'key_expired',
  'untrusted',
  'below_min_trust_level',
  'quarantined',
] as const;
export type ProviderStatusCode = (typeof PROVIDER_STATUSES)[number];

const AttestationRecordSchema = Type.Object({
  provider_id: ProviderIdSchema,
  trust_level: Type.Union([Type.Literal('self_signed'), Type.Literal('hardware')]),
  status: Type.String({ description: '`online`, or the reason why the provider gets no requests.' }),
  chip_name: Type.String(),
  hardware_model: Type.String(),
  serial_number: Type.String(),
  memory_gb: Type.Integer({ minimum: 0 }),
  gpu_cores: Type.Integer({ minimum: 0 }),
  models: Type.Array(Type.String()),
  /** Weight hashes that the provider claims. `source`: `receipt` if the enclave signed the hash in a receipt. */
  weights: Type.Optional(
    Type.Array(
      Type.Object({ model: Type.String(), sha256: Sha256HexSchema, source: Type.Union([Type.Literal('receipt'), Type.Literal('offer')]) }),
    ),
  ),
  secure_enclave: Type.Boolean({ description: "The machine's own claim, signed by its key. `enclave_evidence` says what supports it." }),
  /** Older coordinators omit this member. */
  enclave_evidence: Type.Optional(EnclaveEvidenceSchema),
  sip_enabled: Type.Boolean(),
  secure_boot_enabled: Type.Boolean(),
  authenticated_root_enabled: Type.Boolean(),
  se_public_key: Base64Schema,
  mdm_verified: Type.Boolean({ description: "The coordinator's word: device management reported the protections as on." }),
  acme_verified: Type.Boolean(),
  mda_verified: Type.Boolean(),
  /** Present if `mda_verified` is true, like `mda_serial` to `mda_nonce_preimage`. */
  mda_cert_chain_b64: Type.Optional(chain),
  mda_serial: Type.Optional(Type.String()),
  mda_udid: Type.Optional(Type.String()),
  mda_os_version: Type.Optional(Type.String()),
  mda_sepos_version: Type.Optional(Type.String()),
  /** Preimage of the nonce that binds the chain to the enclave key. */
  mda_nonce_preimage: Type.Optional(NoncePreimageSchema),
  /** Whether the certificates are bound to this enclave key: `bound`, or the reason why not. */
  mda_binding: Type.Union([Type.Literal('bound'), Type.Literal('stale'), Type.Literal('none')]),
  /** Present if `acme_verified` is true. */
  acme_attestation: Type.Optional(Type.Object({ cert_chain_b64: chain, token: Type.String({ minLength: 1, maxLength: 1024 }) })),
  /** Whether the newest challenge was answered in time. */
  attested: Type.Boolean(),
  /** Whether the enclave is simulated. Coordinators admit such providers only with an explicit setting. */
  simulated: Type.Boolean(),
  key_protection: Type.Union([Type.Literal('file'), Type.Literal('keychain_group'), Type.Literal('software')]),
  attestation_statement: SignedStatementSchema,
  key_statement: Type.Union([SignedStatementSchema, Type.Null()]),
  last_challenge: Type.Union([ChallengeTranscriptSchema, Type.Null()]),
  /** State of every component of the trust level. */
  trust_parts: Type.Array(
    Type.Object({
      part: Type.Enum([...TRUST_PARTS]),
      state: Type.Enum([...PART_STATES]),
      reason: Type.Union([Type.Enum([...TRUST_REASONS]), Type.Null()]),
    }),
  ),
});
export type AttestationRecord = Static<typeof AttestationRecordSchema>;

/** Trust anchor of certificate chains. */
const PublishedAnchorSchema = Type.Object({
  common_name: Type.String(),
  /** base64 of the DER-encoded subject name. */
  name: Base64Schema,
  /** base64 of the 97-byte uncompressed P-384 point. */
  public_key: Base64Schema,
  /** True if this is not Apple's anchor. Certificates under such an anchor prove nothing outside a simulation. */
  simulated: Type.Boolean(),
});
export type PublishedAnchor = Static<typeof PublishedAnchorSchema>;

export const AttestationFeedSchema = Type.Object({
  providers: Type.Array(AttestationRecordSchema),
  apple_root_ca_url: Type.String(),
  apple_enterprise_root_ca: Type.String(),
  verification_instructions: Type.String(),
  trust_anchor: PublishedAnchorSchema,
});
export type AttestationFeed = Static<typeof AttestationFeedSchema>;
