/** Verifies the three signed statements of a registration: attestation, challenge response and sealing key. */
import {
  type Attestation,
  CLOCK_TOLERANCE_MS,
  fromBase64,
  fromBase64OrNull,
  fromUtf8,
  type KeyId,
  MAX_KEY_LIFETIME_MS,
  openAttestation,
  openKeyStatement,
  type Posture,
  type ProviderId,
  type Register,
  type RejectionReason,
  type SignedStatement,
} from '@inference/protocol';
import { keyIdOf, providerIdOf, sha256Hex, verifyP256 } from '@inference/protocol/crypto';
import { MAX_ATTESTATION_AGE_MS } from '../../verification/trust-policy.js';
import { openOrRefuse, Refusal } from '../refusal.js';
import { checkAnswer, clockOffsetText, openAnswer, requirePosture } from './challenge-answer.js';

/** Identity of a provider, derived from its enclave key. Constant for a connection. */
export interface Identity {
  readonly providerId: ProviderId;
  /** Uncompressed P-256 point (x963), 65 bytes. */
  readonly publicKey: Uint8Array;
  readonly publicKeySha256: string;
  readonly attestation: Attestation;
  readonly attestationStatement: SignedStatement;
  readonly attestationSha256: string;
  readonly simulated: boolean;
}

export interface SealingKey {
  readonly keyId: KeyId;
  /** Raw X25519 key, 32 bytes. */
  readonly publicKey: Uint8Array;
  readonly notBefore: number;
  readonly notAfter: number;
  readonly statement: SignedStatement;
}

export interface Admitted {
  readonly identity: Identity;
  readonly posture: Posture;
  readonly key: SealingKey;
}

interface AdmissionRules {
  readonly now: number;
  readonly allowSimulatedEnclave: boolean;
  /** Nonce of the challenge that the registration must answer. */
  readonly nonce: string;
  readonly sessionId: string;
}

/** Verifies all three statements. Throws {@link Refusal} with the reason for the provider. */
export function admit(register: Register, rules: AdmissionRules): Admitted {
  const identity = checkAttestation(register.attestation, rules);
  const answer = openAnswer(register.challenge, identity, rules.sessionId);
  if (answer.nonce !== rules.nonce) throw new Refusal('challenge_failed', 'the answer is to another challenge', 'challenge_unknown');
  const posture = checkAnswer(answer, identity, rules.now);
  return { identity, posture, key: checkKey(register.key, identity, rules.now) };
}

/** Verifies a sealing key, which must be bound to this provider and its attestation. Throws {@link Refusal}. */
export function checkKey(statement: SignedStatement, identity: Identity, now: number): SealingKey {
  const { value } = openOrRefuse('key', () => openKeyStatement(statement, identity.publicKey, verifyP256));
  const refuse = (reason: RejectionReason, message: string): Refusal => new Refusal('key_refused', message, reason);
  const publicKey = fromBase64OrNull(value.x25519_public_key);
  if (publicKey === null || publicKey.length !== 32) throw refuse('key_size', 'the sealing key is not 32 bytes');
  if (value.provider_id !== identity.providerId) throw refuse('key_other_provider', 'the sealing key is for another provider');
  if (value.key_id !== keyIdOf(publicKey)) throw refuse('key_id_differs', 'the key id is not that of the key');
  if (value.attestation_sha256 !== identity.attestationSha256) {
    throw refuse('key_other_attestation', 'the sealing key is bound to another attestation');
  }
  const lifetime = value.not_after - value.not_before;
  if (lifetime <= 0 || lifetime > MAX_KEY_LIFETIME_MS) throw refuse('key_lifetime', 'the sealing key lives too long');
  if (value.not_before > now + CLOCK_TOLERANCE_MS) throw refuse('key_not_yet_valid', 'the sealing key is not valid yet');
  if (value.not_after <= now) throw refuse('key_expired', 'the sealing key has expired');
  return { keyId: value.key_id, publicKey, notBefore: value.not_before, notAfter: value.not_after, statement };
}

/** Verifies an attestation, which is signed by the key that it contains. Throws {@link Refusal}. */
export function checkAttestation(statement: SignedStatement, rules: Pick<AdmissionRules, 'now' | 'allowSimulatedEnclave'>): Identity {
  const publicKey = claimedKey(statement);
  const { value, payload } = openOrRefuse('attestation', () => openAttestation(statement, publicKey, verifyP256));
  const { issued_at, posture } = value;
  if (issued_at > rules.now + CLOCK_TOLERANCE_MS) throw refuseAttestation('attestation_from_future', clockOffsetText(issued_at, rules.now));
  if (issued_at < rules.now - MAX_ATTESTATION_AGE_MS) throw refuseAttestation('attestation_too_old', 'the attestation is older than a day');
  requireSafeTexts(value);
  if (value.key_protection === 'software' && posture.secure_enclave) {
    throw refuseAttestation('attestation_contradiction', 'a key in software is in no enclave');
  }
  const simulated = value.key_protection === 'software' || !posture.secure_enclave;
  if (simulated && !rules.allowSimulatedEnclave) {
    throw new Refusal('simulated_enclave_refused', 'this coordinator does not admit simulated enclaves', 'no_secure_enclave');
  }
  requirePosture(posture, simulated);
  return {
    providerId: providerIdOf(publicKey),
    publicKey,
    publicKeySha256: sha256Hex(publicKey),
    attestation: value,
    attestationStatement: { payload: statement.payload, signature: statement.signature },
    attestationSha256: sha256Hex(payload),
    simulated,
  };
}

/** Rejects names and serial numbers that could look like others, such as with a trailing space. The schema rejects control characters. */
function requireSafeTexts({ chip_name, hardware_model, os_version, agent, serial_number }: Attestation): void {
  const trimmed = [chip_name, hardware_model, os_version, agent.version].every((text) => text.trim() === text);
  if (trimmed && /^[0-9A-Za-z-]+$/.test(serial_number)) return;
  throw refuseAttestation('attestation_unsafe_text', 'a name in the attestation has characters that it must not have');
}

/** The key that a statement names as its signer. Not trustworthy until the signature is verified. */
function claimedKey(statement: SignedStatement): Uint8Array {
  let claimed: unknown;
  try {
    claimed = JSON.parse(fromUtf8(fromBase64(statement.payload)));
  } catch {
    throw refuseAttestation('attestation_unreadable', 'the attestation is not JSON in canonical base64');
  }
  const text = typeof claimed === 'object' && claimed !== null && 'se_public_key' in claimed ? claimed.se_public_key : null;
  const key = typeof text === 'string' ? fromBase64OrNull(text) : null;
  if (key === null || key.length !== 65) throw refuseAttestation('attestation_unreadable', 'the attestation names no P-256 public key');
  return key;
}

function refuseAttestation(reason: RejectionReason, message: string): Refusal {
  return new Refusal('attestation_refused', message, reason);
}
