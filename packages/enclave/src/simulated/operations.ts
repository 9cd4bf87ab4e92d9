/** Operations of the simulated helper. They sign only statements built in this file, and the hex digits of response hashes. */
import { createHash, sign } from 'node:crypto';
import {
  type Attestation,
  type ChallengeAnswer,
  CLOCK_TOLERANCE_MS,
  canonicalJsonBytes,
  type E2eReceipt,
  e2eReceiptProblem,
  fromBase64,
  type JsonValue,
  type KeyStatement,
  keyIdFromKeyHash,
  MAX_KEY_LIFETIME_MS,
  type Posture,
  providerIdFromKeyHash,
  RECEIPT_VERSIONS,
  type Receipt,
  receiptVersionProblem,
  type SignedStatement,
  type StatementKind,
  statementBytes,
  toBase64,
  toHex,
  utf8,
} from '@inference/protocol';
import type { ResultOf } from '../contract/replies.js';
import { CONTRACT_VERSION, type Operation, type ParametersOf } from '../contract/requests.js';
import { loadOrCreateKey, type SoftwareKey } from './key-file.js';
import { readMachine, type SimulatedMachine } from './machine.js';
import { Refusal } from './refusal.js';

const HELPER_VERSION = '0.1.0';

export type Operations = { readonly [Op in Operation]: (parameters: ParametersOf<Op>) => ResultOf<Op> };

/** Operations on the key and machine of a data directory. The key is read at first use and cached. */
export function simulatedOperations(dataDir: string, profile: SimulatedMachine, now: () => number): Operations {
  let cached: SoftwareKey | null = null;
  const key = () => {
    cached ??= loadOrCreateKey(dataDir);
    return cached;
  };
  return {
    hello: () => ({
      contract: CONTRACT_VERSION,
      kind: 'simulated',
      version: HELPER_VERSION,
      receipts: [...RECEIPT_VERSIONS],
      e2e_receipts: [1],
    }),
    identity: () => ({ se_public_key: toBase64(key().publicKey), key_protection: 'software', secure_enclave: false }),
    attest: ({ agent }) => {
      const machine = readMachine(dataDir, profile, key().publicKey);
      const { chip_name, hardware_model, serial_number, os_version, memory_gb } = machine;
      const statement: Attestation = {
        v: 1,
        se_public_key: toBase64(key().publicKey),
        key_protection: 'software',
        ...{ chip_name, hardware_model, serial_number, os_version, memory_gb },
        posture: postureOf(machine),
        agent,
        issued_at: now(),
      };
      return signStatement(key(), 'attestation', statement);
    },
    answer_challenge: ({ nonce, session_id }) => {
      decodeMember(nonce, 'nonce');
      const posture = postureOf(readMachine(dataDir, profile, key().publicKey));
      const statement: ChallengeAnswer = { v: 1, nonce, session_id, posture, issued_at: now() };
      return signStatement(key(), 'challenge', statement);
    },
    sign_key: (parameters) => {
      const { x25519_public_key, not_before, not_after, attestation_sha256 } = parameters;
      const sealingKey = decodeMember(x25519_public_key, 'x25519_public_key');
      checkLifetime(not_before, not_after, now());
      const statement: KeyStatement = {
        v: 1,
        provider_id: providerIdFromKeyHash(sha256(key().publicKey)),
        key_id: keyIdFromKeyHash(sha256(sealingKey)),
        ...{ x25519_public_key, not_before, not_after, attestation_sha256 },
      };
      return signStatement(key(), 'key', statement);
    },
    sign_response: ({ receipt }) => {
      const problem = receiptVersionProblem(receipt);
      if (problem !== null) throw new Refusal('bad_request', `receipt${problem}`);
      checkCounts(receipt);
      const keyHash = sha256(key().publicKey);
      const statement: Receipt = { ...receipt, provider_id: providerIdFromKeyHash(keyHash), se_key_sha256: toHex(keyHash) };
      return { signature: toBase64(signBytes(key(), utf8(receipt.response_sha256))), receipt: signStatement(key(), 'receipt', statement) };
    },
    sign_e2e_response: ({ response_sha256, receipt }) => {
      const problem = e2eReceiptProblem(receipt);
      if (problem !== null) throw new Refusal('bad_request', `receipt${problem}`);
      checkCounts(receipt);
      const keyHash = sha256(key().publicKey);
      const statement: E2eReceipt = { ...receipt, provider_id: providerIdFromKeyHash(keyHash), se_key_sha256: toHex(keyHash) };
      return {
        signature: toBase64(signBytes(key(), utf8(response_sha256))),
        sealed_signature: toBase64(signBytes(key(), utf8(receipt.sealed_response_sha256))),
        receipt: signStatement(key(), 'e2e-receipt', statement),
      };
    },
  };
}

/** Consistency rules of plain and end-to-end receipts. */
function checkCounts(receipt: Pick<E2eReceipt, 'usage' | 'hidden_tokens' | 'started_at' | 'completed_at'>): void {
  const { usage } = receipt;
  if (usage !== undefined && usage.total_tokens !== usage.prompt_tokens + usage.completion_tokens)
    throw new Refusal('bad_request', 'usage does not add up');
  if (receipt.hidden_tokens > (usage?.completion_tokens ?? 0)) throw new Refusal('bad_request', 'more hidden tokens than tokens');
  if (receipt.completed_at < receipt.started_at) throw new Refusal('bad_request', 'completed before it started');
}

/** Limits key statements to one hour from now, so that brief access to the helper yields no long-lived statements. */
function checkLifetime(notBefore: number, notAfter: number, now: number): void {
  if (notAfter <= notBefore) throw new Refusal('bad_request', 'not_after is not later than not_before');
  if (notAfter - notBefore > MAX_KEY_LIFETIME_MS) throw new Refusal('bad_request', 'a sealing key lives at most 60 minutes');
  if (notBefore > now + CLOCK_TOLERANCE_MS) throw new Refusal('bad_request', 'not_before is in the future');
  if (notAfter <= now) throw new Refusal('bad_request', 'not_after has passed');
}

function postureOf(machine: Required<SimulatedMachine>): Posture {
  const { sip_enabled, secure_boot_enabled, authenticated_root_enabled } = machine;
  return { secure_enclave: false, sip_enabled, secure_boot_enabled, authenticated_root_enabled };
}

/** Decodes canonical base64; the schema has already fixed the length. */
function decodeMember(text: string, member: string): Uint8Array {
  try {
    return fromBase64(text);
  } catch {
    throw new Refusal('bad_request', `${member} is not canonical base64`);
  }
}

function signStatement(key: SoftwareKey, kind: StatementKind, value: JsonValue): SignedStatement {
  const payload = payloadOf(value);
  return { payload: toBase64(payload), signature: toBase64(signBytes(key, statementBytes(kind, payload))) };
}

function payloadOf(value: JsonValue): Uint8Array {
  try {
    return canonicalJsonBytes(value);
  } catch (error) {
    throw new Refusal('bad_request', (error as Error).message);
  }
}

function signBytes(key: SoftwareKey, bytes: Uint8Array): Uint8Array {
  return sign('sha256', bytes, { key: key.privateKey, dsaEncoding: 'der' });
}

function sha256(bytes: Uint8Array): Uint8Array {
  return createHash('sha256').update(bytes).digest();
}
