/**
 * Provider description: signed statements and facts about a provider, which its owning coordinator sends to peers.
 *
 * Peers request the description when they must verify the provider of a placement, and when a provider has moved. They verify the
 * statements, so that the sender cannot substitute sealing keys or claim a higher trust level.
 */
import { CLOCK_TOLERANCE_MS, HardwareSchema, NoncePreimageSchema, SignedStatementSchema, type TrustLevel } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import type { ProviderSnapshot } from '../../providers/provider-snapshot.js';
import { Refusal } from '../../providers/session/refusal.js';
import { checkAttestation, checkKey, type SealingKey } from '../../providers/session/registration/admission.js';
import { openAnswer, requireSafePosture } from '../../providers/session/registration/challenge-answer.js';
import type { Registration } from '../../providers/session/session-options.js';
import type { TrustAnchor } from '../../providers/verification/chain/trust-anchor.js';
import { evaluateTrust, isPartOk, type TrustLimits } from '../../providers/verification/trust-policy.js';
import { verifyDeviceEvidence } from '../../providers/verification/verify-device-evidence.js';
import { encodeMessage, parseMessage } from '../json-message.js';
import type { Peer } from '../peer.js';
import type { DescribeRequest } from './placement-messages.js';

const Time = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const NullableText = Type.Union([Type.String({ maxLength: 256 }), Type.Null()]);
const Certificates = Type.Array(Type.String({ maxLength: 65_536 }), { maxItems: 8 });

const DeviceEvidenceSchema = Type.Object({
  publicKeySha256: Type.String({ maxLength: 64 }),
  enrolledAt: Type.Union([Time, Type.Null()]),
  security: Type.Union([
    Type.Object({
      receivedAt: Time,
      sipEnabled: Type.Boolean(),
      secureBootLevel: Type.Union([Type.Literal('off'), Type.Literal('medium'), Type.Literal('full'), Type.Literal('not supported')]),
      diskEncryptionEnabled: Type.Boolean(),
      authenticatedRootEnabled: Type.Union([Type.Boolean(), Type.Null()]),
    }),
    Type.Null(),
  ]),
  information: Type.Union([
    Type.Object({
      receivedAt: Time,
      serialNumber: Type.String({ maxLength: 256 }),
      provisioningUdid: NullableText,
      softwareUpdateDeviceId: NullableText,
    }),
    Type.Null(),
  ]),
  chain: Type.Union([Type.Object({ receivedAt: Time, certificates: Certificates, preimage: NoncePreimageSchema }), Type.Null()]),
  acme: Type.Union([Type.Object({ receivedAt: Time, certificates: Certificates, token: Type.String({ maxLength: 1024 }) }), Type.Null()]),
});

const ProviderDescriptionSchema = Type.Object({
  session_id: Type.String({ minLength: 1, maxLength: 64 }),
  attestation: SignedStatementSchema,
  key: SignedStatementSchema,
  challenge: Type.Object({ statement: SignedStatementSchema, answered_at: Time, missed_since: Type.Integer({ minimum: 0, maximum: 16 }) }),
  device: Type.Union([DeviceEvidenceSchema, Type.Null()]),
  hardware: HardwareSchema,
  adjusted: Type.Array(Type.String({ maxLength: 64 }), { maxItems: 64 }),
  memory_gb: Type.Number({ minimum: 0 }),
  slots: Type.Integer({ minimum: 1, maximum: 65_536 }),
  receipt_version: Type.Union([Type.Literal(1), Type.Literal(2)]),
  // Coordinators of earlier versions omit the three optional members.
  e2e_versions: Type.Optional(Type.Array(Type.Integer({ minimum: 1 }), { maxItems: 16 })),
  fallback_models: Type.Optional(Type.Boolean()),
  choices: Type.Optional(Type.Boolean()),
  agent_name: Type.String({ maxLength: 256 }),
  agent_version: Type.String({ maxLength: 256 }),
  registered_at: Time,
});
export type ProviderDescription = Static<typeof ProviderDescriptionSchema>;

const validator = Compile(ProviderDescriptionSchema);

/** Null for a message that violates the schema. */
export const parseProviderDescription = (bytes: Uint8Array): ProviderDescription | null => parseMessage(bytes, validator);

/** Describes a local provider. Null: the provider has no sealing key or has not answered a challenge, so it cannot get jobs. */
export function describeProvider({
  registration,
  sessionId,
  key,
  lastChallenge,
  device,
  isAttested,
}: ProviderSnapshot): ProviderDescription | null {
  if (key === null || lastChallenge === null) return null;
  return {
    session_id: sessionId,
    attestation: registration.identity.attestationStatement,
    key: key.statement,
    challenge: { statement: lastChallenge.statement, answered_at: lastChallenge.answeredAt, missed_since: isAttested ? 0 : 1 },
    // The cast drops `readonly` from nested members.
    device: device === null ? null : (device.evidence as Static<typeof DeviceEvidenceSchema>),
    hardware: registration.hardware,
    adjusted: [...registration.adjusted],
    memory_gb: registration.memoryGb,
    slots: registration.slots,
    receipt_version: registration.receiptVersion,
    e2e_versions: [...registration.e2eVersions],
    fallback_models: registration.servesFallbackModels,
    choices: registration.servesChoices,
    agent_name: registration.agentName,
    agent_version: registration.agentVersion,
    registered_at: registration.registeredAt,
  };
}

/** Settings of this coordinator by which descriptions are verified. */
export interface DescriptionRules {
  readonly allowSimulatedEnclave: boolean;
  readonly anchor: TrustAnchor;
  readonly limits: TrustLimits;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

export interface VerifiedProvider {
  readonly registration: Registration;
  readonly key: SealingKey;
  readonly trustLevel: TrustLevel;
  readonly isDeviceChainVerified: boolean;
  /** Time in the newest signed challenge response, in milliseconds on the provider's clock. */
  readonly challengedAt: number;
  /** Expiry of the description, in milliseconds since 1970. */
  readonly validUntil: number;
}

const ANSWER_TIMEOUT_MS = 3000;

/** Requests and verifies the description of a provider at a peer. Null: no answer, another session, or invalid statements. */
export async function requestDescription(owner: Peer, request: DescribeRequest, rules: DescriptionRules): Promise<VerifiedProvider | null> {
  const answer = await owner.request('describe', encodeMessage(request), ANSWER_TIMEOUT_MS).catch(() => null);
  const description = answer === null ? null : parseProviderDescription(answer);
  if (description === null || description.session_id !== request.session_id) return null;
  try {
    const verified = verifyDescription(description, rules);
    return verified?.registration.identity.providerId === request.provider_id ? verified : null;
  } catch (error) {
    if (error instanceof Refusal) return null;
    throw error;
  }
}

/** Null: the evidence proves no trust level. Throws `Refusal` for invalid statements. */
function verifyDescription(description: ProviderDescription, rules: DescriptionRules): VerifiedProvider | null {
  const now = rules.now();
  const { challenge, device, registered_at: registeredAt } = description;
  const { allowSimulatedEnclave, anchor, limits } = rules;
  // The attestation must have been fresh at registration. Since then, challenge responses confirm the posture.
  const identity = checkAttestation(description.attestation, { now: Math.min(now, registeredAt), allowSimulatedEnclave });
  const key = checkKey(description.key, identity, now);
  const answer = openAnswer(challenge.statement, identity, description.session_id);
  requireSafePosture(answer, identity);
  const { publicKeySha256, simulated } = identity;
  const attestation = {
    publicKeySha256,
    issuedAt: identity.attestation.issued_at,
    receivedAt: registeredAt,
    serialNumber: identity.attestation.serial_number,
    chipName: identity.attestation.chip_name,
    posture: identity.attestation.posture,
    simulated,
  };
  const findings = device === null ? null : verifyDeviceEvidence(device, { publicKeySha256, attestation, anchor, now });
  const verdict = evaluateTrust(
    {
      publicKeySha256,
      attestation,
      // `issued_at` is signed by the provider, so the owning coordinator cannot make an old response look new.
      challenge: {
        publicKeySha256,
        passedAt: Math.min(challenge.answered_at, answer.issued_at + CLOCK_TOLERANCE_MS),
        posture: answer.posture,
        missedSince: challenge.missed_since,
      },
      sealingKey: { publicKeySha256, notAfter: key.notAfter },
      device: findings,
      allowSimulatedEnclave,
    },
    now,
    limits,
  );
  if (verdict.level === null) return null;
  return {
    registration: {
      identity,
      hardware: description.hardware,
      adjusted: description.adjusted,
      memoryGb: description.memory_gb,
      slots: description.slots,
      receiptVersion: description.receipt_version,
      e2eVersions: description.e2e_versions ?? [],
      servesFallbackModels: description.fallback_models ?? false,
      servesChoices: description.choices ?? false,
      agentName: description.agent_name,
      agentVersion: description.agent_version,
      registeredAt,
    },
    key,
    trustLevel: verdict.level,
    isDeviceChainVerified: isPartOk(verdict, 'device_chain'),
    challengedAt: answer.issued_at,
    validUntil: Math.min(verdict.validUntil, key.notAfter),
  };
}
