import { readdirSync, readFileSync } from 'node:fs';
import { canonicalJsonBytes, fromBase64, type JsonValue, statementBytes, toBase64 } from '@inference/protocol';
import { expect, test } from 'vitest';
import { type ClaimedMachine, verifyAttestationStatement } from '../src/verify-attestation.js';
import { type EnclaveKey, generateEnclaveKey, signDer } from './signed-answers.js';

const key = generateEnclaveKey();
const posture = { secure_enclave: true, sip_enabled: true, secure_boot_enabled: true, authenticated_root_enabled: true };
const sample = {
  v: 1,
  se_public_key: toBase64(key.x963),
  key_protection: 'file',
  chip_name: 'M4',
  hardware_model: 'Mac16,1',
  serial_number: 'X',
  os_version: '15.1',
  memory_gb: 16,
  posture,
  agent: { version: '0.1.0' },
  issued_at: 1,
};
const record = { serial_number: 'X', chip_name: 'M4', hardware_model: 'Mac16,1', memory_gb: 16, ...posture };

function signed(value: JsonValue, by: EnclaveKey = key, kind: 'attestation' | 'challenge' = 'attestation') {
  const payload = canonicalJsonBytes(value);
  return { payload: toBase64(payload), signature: toBase64(signDer(by, statementBytes(kind, payload))) };
}

function failed(statement = signed(sample), publicKey: Uint8Array | string = key.x963, claims: ClaimedMachine = record): string[] {
  const verdict = verifyAttestationStatement(statement, publicKey, claims);
  const names = verdict.checks.filter((each) => each.result === 'failed').map((each) => each.name);
  expect(verdict.verified).toBe(names.length === 0);
  return names;
}

test('an unchanged statement passes, by the key in bytes or base64', () => {
  expect(failed()).toEqual([]);
  expect(failed(signed(sample), toBase64(key.x963))).toEqual([]);
  expect(verifyAttestationStatement(signed(sample), key.x963).attestation?.serial_number).toBe('X');
});

test('each defect fails the check that names it', () => {
  expect(failed(signed(sample), generateEnclaveKey().x963)).toEqual(['attestation_signature']);
  expect(failed(signed(sample, key, 'challenge'))).toEqual(['attestation_signature']);
  expect(failed(signed({ ...sample, memory_gb: 0 }))).toEqual(['attestation_signature']);
  expect(failed(signed(sample), 'AAAA')).toEqual(['public_key']);
  expect(failed({ ...signed(sample), payload: '*' })).toEqual(['attestation_signature']);
  expect(failed(signed({ ...sample, se_public_key: toBase64(generateEnclaveKey().x963) }))).toEqual(['attestation_key']);
  expect(failed(signed({ ...sample, key_protection: 'software' }))).toEqual(['attestation_enclave']);
  const simulated = { ...posture, secure_enclave: false };
  expect(failed(signed({ ...sample, posture: simulated }), key.x963, {})).toEqual(['attestation_enclave']);
  for (const member of ['sip_enabled', 'secure_boot_enabled', 'authenticated_root_enabled']) {
    expect(failed(signed({ ...sample, posture: { ...posture, [member]: false } }), key.x963, {})).toEqual(['attestation_posture']);
  }
});

test('every member of the public record is compared', () => {
  for (const [name, value] of Object.entries(record)) {
    const changed = typeof value === 'boolean' ? !value : typeof value === 'number' ? value + 1 : `${value}x`;
    const verdict = verifyAttestationStatement(signed(sample), key.x963, { ...record, [name]: changed });
    expect(verdict.checks.find((each) => each.result === 'failed')).toMatchObject({
      name: 'attestation_record',
      explanation: expect.stringContaining(name),
    });
  }
});

test('changed bytes all over the statement are found', () => {
  const statement = signed(sample);
  for (const member of ['payload', 'signature'] as const) {
    const bytes = fromBase64(statement[member]);
    for (let at = 0; at < bytes.length; at += 11) {
      const copy = Uint8Array.from(bytes);
      copy[at] = (copy[at] as number) ^ 1;
      expect(failed({ ...statement, [member]: toBase64(copy) })).toEqual(['attestation_signature']);
    }
  }
});

test('the verifier imports nothing that browsers lack', () => {
  const folder = new URL('../src/', import.meta.url);
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.ts') && !file.startsWith('cli/'),
  );
  expect(files.length).toBeGreaterThan(10);
  for (const file of files) {
    const imports = [...readFileSync(new URL(file, folder), 'utf8').matchAll(/(?:from|import) '([^']+)'/g)].map((match) => match[1]);
    for (const name of imports)
      expect(name, file).toMatch(/^(\.{1,2}\/|@noble\/|@peculiar\/x509$|reflect-metadata$|typebox(?:\/compile)?$|@inference\/protocol$)/);
  }
});
