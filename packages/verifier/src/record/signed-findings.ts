/** Verifies the statements that the enclave key signed: identity, sealing key, machine and posture, all self-reported. */
import {
  type Attestation,
  type AttestationRecord,
  type ChallengeAnswer,
  CLOCK_TOLERANCE_MS,
  fromBase64OrNull,
  type KeyStatement,
  keyIdFromKeyHash,
  MAX_KEY_LIFETIME_MS,
  openAttestation,
  openChallengeAnswer,
  openKeyStatement,
  providerIdFromKeyHash,
  StatementError,
} from '@inference/protocol';
import { sha256 } from '@noble/hashes/sha2.js';
import { sha256Hex } from '../digest.js';
import { enclaveKeyBytes, verifyP256InBrowser } from '../p256.js';
import { compared, contradicted, coordinatorClaim, type Finding } from './finding.js';

/** Maximum age of the newest challenge answer for `attested`, in milliseconds. Challenges come every five minutes. */
export const MAX_CHALLENGE_AGE_MS = 20 * 60_000;

export interface SignedFindings {
  readonly findings: readonly Finding[];
  /** Null unless the signature verified. */
  readonly attestation: Attestation | null;
  /** The newest answer, verified and recent; null otherwise. */
  readonly challenge: ChallengeAnswer | null;
}

/** Opens the record's statements by the record's own key. `now` in milliseconds. */
export function signedFindings(record: AttestationRecord, now: number): SignedFindings {
  const key = enclaveKeyBytes(record.se_public_key);
  if (key === null) {
    const malformed = contradicted('se_public_key', record.se_public_key, 'It is no base64 of an uncompressed P-256 point.');
    return { findings: [malformed], attestation: null, challenge: null };
  }
  const attestation = openOrNull(() => openAttestation(record.attestation_statement, key, verifyP256InBrowser));
  const challenge = challengeAnswer(record, key, now);
  const findings = [
    compared('provider_id', record.provider_id, providerIdFromKeyHash(sha256(key)), 'It is derived from the hash of the enclave key.'),
    ...machineFindings(record, attestation),
    ...postureFindings(record, challenge, attestation),
    keyFinding(record, key, now),
  ];
  return { findings, attestation, challenge };
}

function machineFindings(record: AttestationRecord, attestation: Attestation | null): Finding[] {
  if (attestation === null) return [contradicted('attestation_statement', 'signed', 'The enclave key did not sign this statement.')];
  const how = 'The enclave key signed it, as what the machine says of itself.';
  return [
    compared('se_public_key', record.se_public_key, attestation.se_public_key, 'The attestation names the key that signed it.'),
    compared('chip_name', record.chip_name, attestation.chip_name, how),
    compared('hardware_model', record.hardware_model, attestation.hardware_model, how),
    compared('serial_number', record.serial_number, attestation.serial_number, how),
    compared('memory_gb', String(record.memory_gb), String(attestation.memory_gb), how),
    compared('key_protection', record.key_protection, attestation.key_protection, how),
    compared(
      'simulated',
      record.simulated,
      attestation.key_protection === 'software' || !attestation.posture.secure_enclave,
      'A key in software, or a machine that says it has no enclave, is a simulation.',
    ),
  ];
}

function postureFindings(record: AttestationRecord, challenge: ChallengeAnswer | null, attestation: Attestation | null): Finding[] {
  const posture = challenge?.posture ?? attestation?.posture;
  const how =
    challenge === null ? "It is signed in the machine's attestation." : "It is signed in the machine's answer to the newest challenge.";
  return [
    compared('secure_enclave', record.secure_enclave, posture?.secure_enclave, how),
    compared('sip_enabled', record.sip_enabled, posture?.sip_enabled, how),
    compared('secure_boot_enabled', record.secure_boot_enabled, posture?.secure_boot_enabled, how),
    compared('authenticated_root_enabled', record.authenticated_root_enabled, posture?.authenticated_root_enabled, how),
    attestedFinding(record, challenge),
  ];
}

/** `attested` may be false despite a good answer: a provider that misses a challenge keeps its last answer in the record. */
function attestedFinding({ attested }: AttestationRecord, challenge: ChallengeAnswer | null): Finding {
  const isSafe = challenge?.posture.sip_enabled === true && challenge.posture.secure_boot_enabled;
  if (isSafe && !attested) {
    return coordinatorClaim('attested', attested, 'Only the coordinator states that a challenge after the newest answer was missed.');
  }
  const how = 'A recent challenge was answered with protections on. Only the coordinator states that its nonce was fresh.';
  return compared('attested', attested, isSafe, how);
}

function challengeAnswer(record: AttestationRecord, key: Uint8Array, now: number): ChallengeAnswer | null {
  const { last_challenge: transcript } = record;
  if (transcript === null) return null;
  const answer = openOrNull(() => openChallengeAnswer(transcript.statement, key, verifyP256InBrowser));
  if (answer === null || answer.nonce !== transcript.nonce || answer.session_id !== transcript.session_id) return null;
  const age = now - answer.issued_at;
  return age <= MAX_CHALLENGE_AGE_MS && age >= -CLOCK_TOLERANCE_MS ? answer : null;
}

function keyFinding(record: AttestationRecord, key: Uint8Array, now: number): Finding {
  const { key_statement: statement } = record;
  if (statement === null) return compared('key_statement', 'none', 'none', 'No sealing key is in use at the moment.');
  const value = openOrNull(() => openKeyStatement(statement, key, verifyP256InBrowser));
  const problem = value === null ? 'The enclave key did not sign its statement.' : sealingKeyProblem(value, record, now);
  return problem === null
    ? compared('key_statement', 'bound', 'bound', 'The enclave key signed the sealing key, for this provider, attestation and time.')
    : contradicted('key_statement', 'bound', `The sealing key must not be used. ${problem}`);
}

/** The first reason against sealing a request to this key at `now` (milliseconds), or null. */
function sealingKeyProblem(value: KeyStatement, record: AttestationRecord, now: number): string | null {
  const publicKey = fromBase64OrNull(value.x25519_public_key);
  const attestation = fromBase64OrNull(record.attestation_statement.payload);
  const lifetime = value.not_after - value.not_before;
  if (publicKey?.length !== 32) return 'It is not 32 bytes.';
  if (value.key_id !== keyIdFromKeyHash(sha256(publicKey))) return 'Its key_id is not the hash of the key.';
  if (value.provider_id !== record.provider_id) return 'It is for another provider.';
  if (attestation === null || value.attestation_sha256 !== sha256Hex(attestation)) return 'It is bound to another attestation.';
  if (lifetime <= 0 || lifetime > MAX_KEY_LIFETIME_MS) return 'It is valid for longer than an hour, or never.';
  if (value.not_before > now + CLOCK_TOLERANCE_MS) return 'It is not valid yet (not_before).';
  if (value.not_after < now - CLOCK_TOLERANCE_MS) return 'It has expired (not_after).';
  return null;
}

function openOrNull<T>(open: () => { readonly value: T }): T | null {
  try {
    return open().value;
  } catch (error) {
    if (error instanceof StatementError) return null;
    throw error;
  }
}
