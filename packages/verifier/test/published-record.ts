/** A provider's public record as a correct coordinator would publish it, signed and certified, for tests of the verifier. */
import 'reflect-metadata';
import { randomBytes } from 'node:crypto';
import { MutationBench, SAMPLE_DEVICE } from '@inference/device-simulation';
import {
  type AttestationFeed,
  type AttestationRecord,
  canonicalJsonBytes,
  fromBase64,
  type JsonValue,
  type ProviderId,
  type SignedStatement,
  type StatementKind,
  statementBytes,
  toBase64,
} from '@inference/protocol';
import { X509Certificate } from '@peculiar/x509';
import { deviceNonce, type TrustAnchor } from '../src/index.js';
import { type EnclaveKey, generateEnclaveKey, sha256, signDer } from './signed-answers.js';

export const bench = new MutationBench();
/** Time at which the records of this file are fresh, in milliseconds. */
export const NOW = bench.now + 60_000;

export const simulatedAnchor: TrustAnchor = {
  name: new Uint8Array(new X509Certificate(bench.authority.rootPem).subjectName.toArrayBuffer()),
  publicKey: bench.authority.rootKey.point,
};

const posture = { secure_enclave: true, sip_enabled: true, secure_boot_enabled: true, authenticated_root_enabled: true };

export function signed(kind: StatementKind, value: JsonValue, key: EnclaveKey): SignedStatement {
  const payload = canonicalJsonBytes(value);
  return { payload: toBase64(payload), signature: toBase64(signDer(key, statementBytes(kind, payload))) };
}

export interface RecordOptions {
  readonly key?: EnclaveKey;
  readonly posture?: Partial<typeof posture>;
  readonly challengedAt?: number;
  readonly keyProtection?: 'file' | 'software';
  readonly chipName?: string;
  /** Time at which the record is fresh; default {@link NOW}. The certificate chain is always of {@link NOW}. */
  readonly now?: number;
  /** Members of the sealing key's statement that replace the correct ones. */
  readonly sealing?: { readonly [member: string]: JsonValue };
}

/** A record of trust level `hardware`. */
export function hardwareRecord(options: RecordOptions = {}): AttestationRecord {
  const { key = generateEnclaveKey(), keyProtection = 'file', now: fresh = NOW } = options;
  const keyText = toBase64(key.x963);
  const providerId = sha256(key.x963).slice(0, 32) as ProviderId;
  const machine = {
    chip_name: options.chipName ?? 'Apple M4 Max',
    hardware_model: 'Mac16,5',
    serial_number: SAMPLE_DEVICE.serialNumber,
    memory_gb: 64,
  };
  const attestation = signed(
    'attestation',
    {
      v: 1,
      se_public_key: keyText,
      key_protection: keyProtection,
      ...machine,
      os_version: 'macOS 26.2.0',
      posture: options.posture?.secure_enclave === false ? { ...posture, secure_enclave: false } : posture,
      agent: { version: '0.1.0' },
      issued_at: fresh - 60_000,
    },
    key,
  );
  const nonce = toBase64(randomBytes(32));
  const now = options.challengedAt ?? fresh - 30_000;
  const answer = { v: 1, nonce, session_id: 's1', posture: { ...posture, ...options.posture }, issued_at: now };
  const sealingKey = randomBytes(32);
  const sealing = {
    v: 1,
    provider_id: providerId,
    key_id: sha256(sealingKey).slice(0, 16),
    x25519_public_key: toBase64(sealingKey),
    not_before: fresh - 60_000,
    not_after: fresh + 1_800_000,
    attestation_sha256: sha256(fromBase64(attestation.payload)),
    ...options.sealing,
  };
  const preimage = { se_public_key: keyText, epoch: 2944, random: toBase64(randomBytes(16)) };
  const freshness = deviceNonce(preimage) as Uint8Array;
  const chain = bench.authority.issue({ now: bench.now, random: bench.random, device: SAMPLE_DEVICE, freshness }).certificates;
  return {
    provider_id: providerId,
    trust_level: 'hardware',
    status: 'online',
    ...machine,
    gpu_cores: 40,
    models: ['m'],
    ...posture,
    ...options.posture,
    se_public_key: keyText,
    mdm_verified: true,
    acme_verified: false,
    mda_verified: true,
    mda_cert_chain_b64: chain.map(toBase64),
    mda_serial: SAMPLE_DEVICE.serialNumber,
    mda_udid: SAMPLE_DEVICE.provisioningUdid,
    mda_os_version: SAMPLE_DEVICE.osVersion,
    mda_sepos_version: SAMPLE_DEVICE.sepOsVersion,
    mda_nonce_preimage: preimage,
    mda_binding: 'bound',
    attested: true,
    simulated: keyProtection === 'software' || options.posture?.secure_enclave === false,
    key_protection: keyProtection,
    attestation_statement: attestation,
    key_statement: signed('key', sealing, key),
    last_challenge: { nonce, session_id: 's1', statement: signed('challenge', answer, key), answered_at: now },
    trust_parts: [],
  };
}

/** The record without certificates and device management. */
export function selfSignedRecord(options: RecordOptions = {}): AttestationRecord {
  const { mda_cert_chain_b64, mda_serial, mda_udid, mda_os_version, mda_sepos_version, mda_nonce_preimage, ...rest } =
    hardwareRecord(options);
  return { ...rest, trust_level: 'self_signed', mdm_verified: false, mda_verified: false, mda_binding: 'none' };
}

export function feedOf(...providers: readonly AttestationRecord[]): AttestationFeed {
  return {
    providers: [...providers],
    apple_root_ca_url: 'https://www.apple.com/certificateauthority/private/',
    apple_enterprise_root_ca: 'Apple Enterprise Attestation Root CA',
    verification_instructions: 'Read them.',
    trust_anchor: {
      common_name: bench.authority.names.root,
      name: toBase64(simulatedAnchor.name),
      public_key: toBase64(simulatedAnchor.publicKey),
      simulated: true,
    },
  };
}
