/**
 * Verifies the claims that an enclave key signed about its machine. Only Apple's certificate chain shows that the machine is genuine,
 * and is not checked here.
 */
import {
  type Attestation,
  equalBytes,
  openAttestation,
  type SignedStatement,
  StatementError,
  type StatementProblem,
} from '@inference/protocol';
import { allOk, check, type Verdict } from './checks.js';
import { enclaveKeyBytes, verifyP256InBrowser } from './p256.js';

/** Members of the public record that the statement must agree with. Absent members are not compared. */
export interface ClaimedMachine {
  readonly serial_number?: string;
  readonly chip_name?: string;
  readonly hardware_model?: string;
  readonly memory_gb?: number;
  readonly secure_enclave?: boolean;
  readonly sip_enabled?: boolean;
  readonly secure_boot_enabled?: boolean;
  readonly authenticated_root_enabled?: boolean;
}

export interface AttestationVerdict extends Verdict {
  /** The statement; null unless its signature verified. */
  readonly attestation: Attestation | null;
}

const PROBLEMS: Record<StatementProblem, string> = {
  bad_encoding: 'The statement or its signature is not canonical base64.',
  bad_signature: 'The key did not sign this statement.',
  not_canonical: 'The statement is signed but is not canonical JSON.',
  bad_schema: 'The statement is signed but lacks members or has wrong ones.',
  unknown_critical: 'The statement is signed but says something that this program does not know and must not ignore.',
};

/**
 * Verifies a statement by its key, and its agreement with the record. Never throws for invalid input.
 *
 * @param publicKey 65 bytes x963, or base64 as in `se_public_key`.
 */
export function verifyAttestationStatement(
  statement: SignedStatement,
  publicKey: Uint8Array | string,
  record: ClaimedMachine = {},
): AttestationVerdict {
  const key = enclaveKeyBytes(publicKey);
  if (key === null) {
    const malformed = check('public_key', false, '', 'The public key is not base64 of an uncompressed P-256 point.');
    return { verified: false, checks: [malformed], attestation: null };
  }
  let attestation: Attestation;
  try {
    attestation = openAttestation(statement, key, verifyP256InBrowser).value;
  } catch (error) {
    if (!(error instanceof StatementError)) throw error;
    return { verified: false, checks: [check('attestation_signature', false, '', PROBLEMS[error.problem])], attestation: null };
  }
  const named = enclaveKeyBytes(attestation.se_public_key);
  const { posture } = attestation;
  const differing = differences(attestation, record);
  const checks = [
    check('attestation_signature', true, 'The enclave key signed the statement.', ''),
    check('attestation_key', named !== null && equalBytes(named, key), 'The statement names this key.', 'The statement names another key.'),
    check(
      'attestation_enclave',
      posture.secure_enclave && attestation.key_protection !== 'software',
      'The machine says that the key lives in its Secure Enclave.',
      'The key is kept in software: this is a simulated enclave.',
    ),
    check(
      'attestation_posture',
      posture.sip_enabled && posture.secure_boot_enabled && posture.authenticated_root_enabled,
      'The machine says that its protections are on.',
      'The machine says that system integrity protection, secure boot or the sealed system volume is off.',
    ),
    check(
      'attestation_record',
      differing.length === 0,
      'The public record agrees with the statement.',
      `The public record differs from the statement in ${differing.join(', ')}.`,
    ),
  ];
  return { verified: allOk(checks), checks, attestation };
}

function differences(attestation: Attestation, record: ClaimedMachine): string[] {
  const { serial_number, chip_name, hardware_model, memory_gb, posture } = attestation;
  const stated: Required<ClaimedMachine> = { serial_number, chip_name, hardware_model, memory_gb, ...posture };
  return (Object.keys(stated) as (keyof ClaimedMachine)[]).filter((name) => record[name] !== undefined && record[name] !== stated[name]);
}
