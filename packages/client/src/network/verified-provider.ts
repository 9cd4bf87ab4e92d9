/** Verifies one provider under a policy: attestation record, sealing key, and their agreement with the keyset entry. */
import {
  type AttestationRecord,
  CLOCK_TOLERANCE_MS,
  canonicalJsonBytes,
  type E2eCrypto,
  type E2eKeysetProvider,
  type E2eRecipient,
  type EnclaveEvidence,
  fromBase64,
  type JsonValue,
  keysetPublicKey,
  openChallengeAnswer,
  openKeyStatement,
  StatementError,
  toBase64,
  toHex,
} from '@inference/protocol';
import {
  type ActiveTrustAnchor,
  APPLE_ENTERPRISE_ATTESTATION_ROOT,
  verifyDeviceChain,
  verifyP256InBrowser,
  verifyRecord,
} from '@inference/verifier';
import type { Policy } from '../policy/policy.js';
import { type E2ERefusalCode, E2ERefused } from '../refusal.js';
import { canonicalBytesOrNull } from './download.js';

/** Time before a key expires in which no request is sealed to it, because the provider opens the request later. */
const KEY_RESERVE_MS = 5 * 60_000;

/** A provider that a request may be sealed to. */
export interface VerifiedProvider {
  readonly providerId: string;
  /** Enclave key, 65 bytes x963. */
  readonly enclaveKey: Uint8Array;
  /** Lowercase hexadecimal SHA-256 of the enclave key. */
  readonly enclaveKeySha256: string;
  readonly recipient: E2eRecipient;
  /** Time until which requests may be sealed to the key, in milliseconds since 1970. */
  readonly usableUntil: number;
  /** Evidence computed by this client. */
  readonly evidence: EnclaveEvidence;
  /** The machine's own claim, signed by its key. `certified` evidence confirms it. */
  readonly serialNumber: string;
  /** The machine's own claim, signed by its key. */
  readonly chipName: string;
  /** The machine's own claim, signed by its key. */
  readonly hardwareModel: string;
}

export interface ProviderToVerify {
  readonly entry: E2eKeysetProvider;
  readonly record: AttestationRecord;
  /** Anchor of a simulated network, if the policy accepts simulations; null otherwise. */
  readonly simulatedAnchor: ActiveTrustAnchor | null;
  readonly policy: Policy;
  /** Whether this client has verified a real provider of this network. */
  readonly hasSeenReal: boolean;
  /** Milliseconds. */
  readonly now: number;
}

/** Returns the provider if its evidence satisfies the policy. Throws {@link E2ERefused}. */
export function verifyProvider(crypto: E2eCrypto, input: ProviderToVerify): VerifiedProvider {
  const { entry, record, policy, now } = input;
  const refuse = (code: E2ERefusalCode, reason: string): never => {
    throw new E2ERefused(code, `Provider ${entry.provider_id}: ${reason}`);
  };
  if (record.provider_id !== entry.provider_id || recordSha256(crypto, record) !== entry.record_sha256) {
    refuse('targeted', 'its attestation record is not the one that the keyset names.');
  }
  const { recipient, usableUntil, enclaveKey } = sealingKeyOf(crypto, input, refuse);
  requirePosture(input, enclaveKey, refuse);
  const evidence = evidenceOf(input, refuse);
  requireEvidence(input, evidence, refuse);
  const enclaveKeySha256 = toHex(crypto.sha256(enclaveKey));
  if (policy.enclaveKeys?.includes(enclaveKeySha256) === false) refuse('policy', 'its enclave key is not among enclaveKeys.');
  if (policy.serials?.includes(record.serial_number) === false) refuse('policy', 'its serial number is not among serials.');
  if (usableUntil <= now) refuse('stale', 'its sealing key is about to expire.');
  return {
    providerId: entry.provider_id,
    enclaveKey,
    enclaveKeySha256,
    recipient,
    usableUntil,
    evidence,
    serialNumber: record.serial_number,
    chipName: record.chip_name,
    hardwareModel: record.hardware_model,
  };
}

/** Returns the lowercase hexadecimal SHA-256 of a record's canonical JSON; null: the record has no canonical form. */
function recordSha256(crypto: E2eCrypto, record: AttestationRecord): string | null {
  const bytes = canonicalBytesOrNull(() => canonicalJsonBytes(record as unknown as JsonValue));
  return bytes === null ? null : toHex(crypto.sha256(bytes));
}

type Refuse = (code: E2ERefusalCode, reason: string) => never;

function sealingKeyOf(
  crypto: E2eCrypto,
  { entry, record, policy, now }: ProviderToVerify,
  refuse: Refuse,
): Pick<VerifiedProvider, 'recipient' | 'usableUntil' | 'enclaveKey'> {
  const x25519 = keysetPublicKey(crypto, entry);
  if (x25519 === null) return refuse('key_unbound', 'its key_id is not the hash of its sealing key.');
  const enclaveKey = bytesOf(record.se_public_key);
  const statement = record.key_statement;
  const value =
    enclaveKey === null || statement === null ? null : openOrNull(() => openKeyStatement(statement, enclaveKey, verifyP256InBrowser).value);
  if (value === null || enclaveKey === null) return refuse('key_unbound', 'its enclave key did not sign a sealing key.');
  if (value.x25519_public_key !== toBase64(x25519) || value.key_id !== entry.key_id || value.provider_id !== entry.provider_id) {
    return refuse('key_unbound', 'its enclave key signed another sealing key.');
  }
  const attestation = bytesOf(record.attestation_statement.payload);
  if (attestation === null || value.attestation_sha256 !== toHex(crypto.sha256(attestation))) {
    return refuse('key_unbound', 'its sealing key is bound to another attestation.');
  }
  if (value.not_after <= now || now - value.not_before > policy.maxKeyAge + CLOCK_TOLERANCE_MS) {
    return refuse('stale', 'its sealing key is too old.');
  }
  if (value.not_before > now + CLOCK_TOLERANCE_MS) return refuse('stale', 'its sealing key is not valid yet.');
  const usableUntil = Math.min(value.not_after, entry.not_after) - KEY_RESERVE_MS;
  const recipient = { provider_id: entry.provider_id, key_id: entry.key_id, x25519 };
  return { recipient, usableUntil, enclaveKey };
}

/** Requires that the newest answer to a challenge is recent, signed by the enclave key, and reports the protections as on. */
function requirePosture({ record, policy, now }: ProviderToVerify, enclaveKey: Uint8Array, refuse: Refuse): void {
  const { last_challenge: transcript } = record;
  if (transcript === null) refuse('stale', 'it has answered no challenge.');
  const answer = openOrNull(() => openChallengeAnswer(transcript.statement, enclaveKey, verifyP256InBrowser).value);
  if (answer === null || answer.nonce !== transcript.nonce || answer.session_id !== transcript.session_id) {
    refuse('policy', 'its enclave key did not sign the answer to its challenge.');
  }
  if (now - answer.issued_at > policy.maxChallengeAge + CLOCK_TOLERANCE_MS) refuse('stale', 'its newest challenge is too old.');
  if (answer.issued_at > now + CLOCK_TOLERANCE_MS) refuse('stale', 'its newest challenge lies in the future.');
  const { sip_enabled, secure_boot_enabled, authenticated_root_enabled } = answer.posture;
  const isProtected = sip_enabled && secure_boot_enabled && authenticated_root_enabled;
  if (!isProtected) refuse('revoked', 'its protections are off.');
  if (!record.attested) refuse('revoked', 'it has not answered its newest challenge in time.');
}

/** Returns the evidence under the first trust anchor for which the record is consistent. */
function evidenceOf(input: ProviderToVerify, refuse: Refuse): EnclaveEvidence {
  const { record, policy, simulatedAnchor, now } = input;
  const verdicts = anchorsOf(policy, simulatedAnchor).map((anchor) => ({ anchor, verdict: verifyRecord(record, now, anchor) }));
  const consistent = verdicts.find(({ verdict }) => verdict.consistent);
  if (consistent === undefined) return refuse(...contradictionOf(input, verdicts[0]?.verdict.findings ?? []));
  const chain = record.mda_cert_chain_b64;
  if (consistent.verdict.enclave === 'certified' && chain !== undefined) {
    const expected = { serial: record.serial_number, maxAgeMs: policy.maxChainAge };
    const { ok } = verifyDeviceChain(chain, expected, now, consistent.anchor.anchor);
    if (!ok) return refuse('stale', 'its device certificate is too old.');
  }
  return consistent.verdict.enclave;
}

const SIMULATED =
  'it is simulated, or certified by a test authority. Development networks alone have such machines: to accept them, set allowSimulated (--allow-simulated).';

interface Contradiction {
  readonly claim: string;
  readonly result: string;
  readonly explanation: string;
}

function contradictionOf({ record, policy, hasSeenReal }: ProviderToVerify, findings: readonly Contradiction[]): [E2ERefusalCode, string] {
  const first = findings.find(({ result }) => result === 'contradicted');
  // The explanation of a refused chain ends with its `ChainRejection` code (`certificateFindings` of the verifier).
  const isOld = record.mda_verified && /: (?:too_old|leaf_expired|issuer_expired)\.$/.test(first?.explanation ?? '');
  const isSimulation = record.simulated || /: anchor_(?:name|signature)\.$/.test(first?.explanation ?? '');
  const code = isOld ? 'stale' : isSimulation && hasSeenReal ? 'targeted' : 'policy';
  if (isSimulation && !policy.allowSimulated) return [code, SIMULATED];
  return [code, `its evidence contradicts ${first?.claim ?? 'its record'}. ${first?.explanation ?? ''}`];
}

function anchorsOf(policy: Policy, simulatedAnchor: ActiveTrustAnchor | null): readonly ActiveTrustAnchor[] {
  const own = policy.anchors?.map(({ name, publicKey }) => ({ name: fromBase64(name), publicKey: fromBase64(publicKey) }));
  const anchors = (own ?? [APPLE_ENTERPRISE_ATTESTATION_ROOT]).map((anchor) => ({ anchor, simulated: false }));
  return policy.allowSimulated && simulatedAnchor !== null ? [...anchors, simulatedAnchor] : anchors;
}

function requireEvidence({ record, policy, hasSeenReal }: ProviderToVerify, evidence: EnclaveEvidence, refuse: Refuse): void {
  if (evidence === 'simulated') {
    if (!policy.allowSimulated) refuse(hasSeenReal ? 'targeted' : 'policy', SIMULATED);
    return;
  }
  if (policy.evidence === 'enclave') return;
  if (evidence !== 'certified') refuse('policy', 'no certificate of the manufacturer is bound to its key.');
  if (policy.evidence === 'maker+mdm' && !record.mdm_verified) refuse('policy', 'device management does not confirm it.');
}

function bytesOf(base64: string): Uint8Array | null {
  try {
    return fromBase64(base64);
  } catch {
    return null;
  }
}

function openOrNull<T>(open: () => T): T | null {
  try {
    return open();
  } catch (error) {
    if (error instanceof StatementError) return null;
    throw error;
  }
}
