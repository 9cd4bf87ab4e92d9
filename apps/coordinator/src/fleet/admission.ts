/**
 * Checks the statements a provider registers with: the attestation by its own key, the answer to this session's challenge,
 * and the sealing key bound to both. Pure: everything it rests on comes in as an argument, and a refusal names its reason.
 */
import {
  type Attestation,
  CLOCK_TOLERANCE_MS,
  fromBase64,
  fromUtf8,
  type KeyId,
  MAX_KEY_LIFETIME_MS,
  type OpenedStatement,
  openAttestation,
  openChallengeAnswer,
  openKeyStatement,
  type Posture,
  type ProviderId,
  type Register,
  type RejectionCode,
  type SignedStatement,
  StatementError,
} from '@inference/protocol';
import { keyIdOf, providerIdOf, sha256Hex, verifyP256 } from '@inference/protocol/crypto';
import { postureGap } from './trust.js';

/** An attestation may be this old when it is shown; the posture in it is renewed by every challenge. In milliseconds. */
export const MAX_ATTESTATION_AGE_MS = 24 * 60 * 60_000;

/** A provider is its enclave key. What is fixed for the life of a connection. */
export interface Identity {
  readonly providerId: ProviderId;
  /** 65-byte x963 point. */
  readonly publicKey: Uint8Array;
  readonly publicKeySha256: string;
  readonly attestation: Attestation;
  readonly attestationStatement: SignedStatement;
  readonly attestationSha256: string;
  readonly simulated: boolean;
}

export interface SealingKey {
  readonly keyId: KeyId;
  /** 32 raw bytes. */
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

export interface AdmissionRules {
  readonly now: number;
  readonly allowSimulatedEnclave: boolean;
  /** The challenge this answer must be to. */
  readonly nonce: string;
  readonly sessionId: string;
}

export class Refusal extends Error {
  constructor(
    readonly code: RejectionCode,
    message: string,
  ) {
    super(message);
    this.name = 'Refusal';
  }
}

/** Throws {@link Refusal} with the reason the provider is told. */
export function admit(register: Register, rules: AdmissionRules): Admitted {
  const identity = checkAttestation(register.attestation, rules);
  const posture = checkChallengeAnswer(register.challenge, identity, rules);
  return { identity, posture, key: checkKey(register.key, identity, rules.now) };
}

/** Posture in a verified answer to one challenge. Throws {@link Refusal}. */
export function checkChallengeAnswer(
  statement: SignedStatement,
  identity: Identity,
  rules: { readonly now: number; readonly nonce: string; readonly sessionId: string },
): Posture {
  const { value } = open('challenge_failed', () => openChallengeAnswer(statement, identity.publicKey, verifyP256));
  if (value.session_id !== rules.sessionId) throw new Refusal('challenge_failed', 'the answer is for another session');
  if (value.nonce !== rules.nonce) throw new Refusal('challenge_failed', 'the answer is to another challenge');
  if (Math.abs(value.issued_at - rules.now) > CLOCK_TOLERANCE_MS)
    throw new Refusal('challenge_failed', clockText(value.issued_at, rules.now));
  if (value.posture.secure_enclave !== identity.attestation.posture.secure_enclave) {
    throw new Refusal('challenge_failed', 'attestation and challenge answer disagree on the enclave');
  }
  requirePosture(value.posture, identity.simulated);
  return value.posture;
}

/** A sealing key bound to this provider and its attestation. Throws {@link Refusal}. */
export function checkKey(statement: SignedStatement, identity: Identity, now: number): SealingKey {
  const { value } = open('key_refused', () => openKeyStatement(statement, identity.publicKey, verifyP256));
  const publicKey = fromBase64OrNull(value.x25519_public_key);
  if (publicKey === null || publicKey.length !== 32) throw new Refusal('key_refused', 'the sealing key is not 32 bytes');
  if (value.provider_id !== identity.providerId) throw new Refusal('key_refused', 'the sealing key is for another provider');
  if (value.key_id !== keyIdOf(publicKey)) throw new Refusal('key_refused', 'the key id is not that of the key');
  if (value.attestation_sha256 !== identity.attestationSha256)
    throw new Refusal('key_refused', 'the sealing key is bound to another attestation');
  const lifetime = value.not_after - value.not_before;
  if (lifetime <= 0 || lifetime > MAX_KEY_LIFETIME_MS) throw new Refusal('key_refused', 'the sealing key lives too long');
  if (value.not_before > now + CLOCK_TOLERANCE_MS) throw new Refusal('key_refused', 'the sealing key is not valid yet');
  if (value.not_after <= now) throw new Refusal('key_refused', 'the sealing key has expired');
  return { keyId: value.key_id, publicKey, notBefore: value.not_before, notAfter: value.not_after, statement };
}

function checkAttestation(statement: SignedStatement, rules: AdmissionRules): Identity {
  const publicKey = claimedKey(statement);
  const { value, payload } = open('attestation_refused', () => openAttestation(statement, publicKey, verifyP256));
  if (value.issued_at > rules.now + CLOCK_TOLERANCE_MS) throw new Refusal('attestation_refused', clockText(value.issued_at, rules.now));
  if (value.issued_at < rules.now - MAX_ATTESTATION_AGE_MS) throw new Refusal('attestation_refused', 'the attestation is older than a day');
  const simulated = value.key_protection === 'software' || !value.posture.secure_enclave;
  if (value.key_protection === 'software' && value.posture.secure_enclave) {
    throw new Refusal('attestation_refused', 'a key in software is in no enclave');
  }
  if (simulated && !rules.allowSimulatedEnclave) {
    throw new Refusal('simulated_enclave_refused', 'this coordinator does not admit simulated enclaves');
  }
  requirePosture(value.posture, simulated);
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

/** The key a statement claims to be signed by. It proves nothing until the signature is checked by it. */
function claimedKey(statement: SignedStatement): Uint8Array {
  let claimed: unknown;
  try {
    claimed = JSON.parse(fromUtf8(fromBase64(statement.payload)));
  } catch {
    throw new Refusal('attestation_refused', 'the attestation is not JSON in canonical base64');
  }
  const text = typeof claimed === 'object' && claimed !== null && 'se_public_key' in claimed ? claimed.se_public_key : null;
  const key = typeof text === 'string' ? fromBase64OrNull(text) : null;
  if (key === null || key.length !== 65) throw new Refusal('attestation_refused', 'the attestation names no P-256 public key');
  return key;
}

function requirePosture(posture: Posture, simulated: boolean): void {
  const gap = postureGap(posture, simulated);
  if (gap !== null) throw new Refusal('posture_insufficient', `the machine is not protected: ${gap}`);
}

function open<T>(code: RejectionCode, opener: () => OpenedStatement<T>): OpenedStatement<T> {
  try {
    return opener();
  } catch (error) {
    if (error instanceof StatementError) throw new Refusal(code, error.message);
    throw error;
  }
}

function fromBase64OrNull(text: string): Uint8Array | null {
  try {
    return fromBase64(text);
  } catch {
    return null;
  }
}

function clockText(theirs: number, ours: number): string {
  return `the statement's time is ${Math.round(Math.abs(theirs - ours) / 1000)} s away from this coordinator's clock`;
}
