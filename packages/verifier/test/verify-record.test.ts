import { SAMPLE_DEVICE } from '@inference/device-simulation';
import { type AttestationRecord, toBase64 } from '@inference/protocol';
import { describe, expect, test } from 'vitest';
import { FeedError, type Finding, type StageVerdict, VERIFICATION_STAGES, verifyFeed, verifyInStages, verifyRecord } from '../src/index.js';
import { acmeFreshness } from '../src/record/certificate-evidence.js';
import { bench, feedOf, hardwareRecord, NOW, selfSignedRecord, signed, simulatedAnchor } from './published-record.js';
import { generateEnclaveKey } from './signed-answers.js';

const simulated = { anchor: simulatedAnchor, simulated: true };
/** As if the simulated root were Apple's. */
const apple = { anchor: simulatedAnchor, simulated: false };

function contradictions(record: AttestationRecord, anchor = apple): string[] {
  const verdict = verifyRecord(record, NOW, anchor);
  const claims = verdict.findings.filter(({ result }) => result === 'contradicted').map(({ claim }) => claim);
  expect(verdict.consistent).toBe(claims.length === 0);
  return claims;
}

function finding(record: AttestationRecord, claim: string, anchor = apple): Finding | undefined {
  return verifyRecord(record, NOW, anchor).findings.find((each) => each.claim === claim);
}

describe('a public record', () => {
  test('of trust level hardware is reproduced in every claim but that of device management', () => {
    const { findings } = verifyRecord(hardwareRecord(), NOW, apple);
    expect(findings.filter(({ result }) => result !== 'reproduced').map(({ claim, result }) => [claim, result])).toEqual([
      ['mdm_verified', 'word'],
      ['trust_level', 'word'],
    ]);
    const claims = new Set(findings.map(({ claim }) => claim));
    for (const boolean of ['secure_enclave', 'sip_enabled', 'secure_boot_enabled', 'authenticated_root_enabled', 'attested']) {
      expect(claims).toContain(boolean);
    }
    for (const boolean of ['mdm_verified', 'acme_verified', 'mda_verified', 'simulated']) expect(claims).toContain(boolean);
  });

  test('is evaluated stage by stage with the same verdict, and shows the steps of its chain', () => {
    for (const record of [hardwareRecord(), selfSignedRecord(), { ...hardwareRecord(), serial_number: 'SIM000000X' }]) {
      const stages = verifyInStages(record, NOW, apple);
      const seen: StageVerdict[] = [];
      let step = stages.next();
      for (; !step.done; step = stages.next()) seen.push(step.value);
      expect(step.value).toEqual(verifyRecord(record, NOW, apple));
      expect(seen.map(({ stage }) => stage)).toEqual(VERIFICATION_STAGES);
      expect(seen.flatMap(({ findings }) => findings)).toEqual(step.value.findings);
      const { chain } = seen[1] as StageVerdict;
      if (!record.mda_verified) expect(chain).toBeNull();
      else if (record.serial_number === SAMPLE_DEVICE.serialNumber) expect(chain).toMatchObject({ ok: true });
      else expect(chain).toMatchObject({ ok: false, code: 'serial_mismatch', steps: ['encoding', 'path', 'anchor', 'extensions'] });
    }
  });

  test('of trust level self_signed is reproduced as such', () => {
    expect(contradictions(selfSignedRecord())).toEqual([]);
    expect(finding(selfSignedRecord(), 'trust_level')).toMatchObject({ value: 'self_signed', result: 'reproduced' });
  });

  test('under a simulated root is called simulated, never proven', () => {
    const { findings } = verifyRecord(hardwareRecord(), NOW, simulated);
    const byClaim = Object.fromEntries(findings.map(({ claim, result }) => [claim, result]));
    expect(byClaim).toMatchObject({ mda_verified: 'simulated', mda_serial: 'simulated', trust_level: 'simulated', mdm_verified: 'word' });
  });

  test("under a simulated root is contradicted under the manufacturer's anchor", () => {
    expect(verifyRecord(hardwareRecord(), NOW).findings.find(({ claim }) => claim === 'mda_verified')).toMatchObject({
      result: 'contradicted',
      explanation: 'The chain is refused: anchor_name.',
    });
  });

  test.each<[string, Partial<AttestationRecord>, string[]]>([
    ['another chip', { chip_name: 'Apple M3 Ultra' }, ['chip_name', 'mda_verified', 'trust_level']],
    ['another model', { hardware_model: 'Mac99,9' }, ['hardware_model']],
    ['another serial number', { serial_number: 'SIM000000X' }, ['serial_number', 'mda_verified', 'trust_level']],
    ['more memory', { memory_gb: 128 }, ['memory_gb']],
    ['a better protected key', { key_protection: 'keychain_group' }, ['key_protection']],
    ['protections that are said to be off', { sip_enabled: false }, ['sip_enabled', 'trust_level']],
    ['no enclave', { secure_enclave: false }, ['secure_enclave']],
    ['a simulation', { simulated: true }, ['simulated', 'trust_level']],
    ['no challenge', { last_challenge: null }, ['attested', 'trust_level']],
    ['another provider id', { provider_id: '0'.repeat(32) as AttestationRecord['provider_id'] }, ['provider_id', 'key_statement']],
    ['a chain without a claim', { mda_verified: false }, ['mda_verified', 'trust_level']],
    ['another certified serial number', { mda_serial: 'SIM000000X' }, ['mda_serial', 'trust_level']],
    ['another certified system', { mda_os_version: '99.0' }, ['mda_os_version']],
    ['a proof by ACME that is not there', { acme_verified: true }, ['acme_verified']],
    ['a level that its parts do not support', { mdm_verified: false }, ['trust_level']],
    ['a lower level than its parts support', { trust_level: 'self_signed' }, ['trust_level']],
  ])('is contradicted when it claims %s', (_, change, expected) => {
    expect(contradictions({ ...hardwareRecord(), ...change })).toEqual(expect.arrayContaining(expected));
    expect(contradictions({ ...hardwareRecord(), ...change })).toHaveLength(expected.length);
  });

  test("has no level above its own word for a key in software, which the manufacturer's certificates may be bound to", () => {
    const relayed = hardwareRecord({ keyProtection: 'software' });
    expect(finding(relayed, 'mda_verified')?.result).toBe('reproduced');
    expect(contradictions(relayed)).toEqual(['trust_level']);
    expect(contradictions({ ...relayed, trust_level: 'self_signed' })).toEqual([]);
    expect(contradictions(relayed, simulated)).toEqual([]);
  });

  test('is contradicted when its certificates were made for another enclave key', () => {
    const other = hardwareRecord();
    const stolen = { mda_cert_chain_b64: other.mda_cert_chain_b64, mda_nonce_preimage: other.mda_nonce_preimage };
    expect(finding({ ...hardwareRecord(), ...stolen } as AttestationRecord, 'mda_verified')).toMatchObject({
      result: 'contradicted',
      explanation: 'The nonce was not made from this enclave key.',
    });
    const record = hardwareRecord();
    const preimage = { ...other.mda_nonce_preimage, se_public_key: record.se_public_key };
    const relabelled = { ...record, mda_cert_chain_b64: other.mda_cert_chain_b64, mda_nonce_preimage: preimage } as AttestationRecord;
    expect(finding(relabelled, 'mda_verified')?.explanation).toBe('The chain is refused: freshness_mismatch.');
  });

  test('does not count a challenge that is old, of another session, or signed by another key', () => {
    expect(contradictions(hardwareRecord({ challengedAt: NOW - 3_600_000 }))).toContain('attested');
    const record = hardwareRecord();
    const transcript = record.last_challenge as NonNullable<AttestationRecord['last_challenge']>;
    expect(contradictions({ ...record, last_challenge: { ...transcript, session_id: 's2' } })).toContain('attested');
    expect(contradictions({ ...record, last_challenge: { ...transcript, nonce: 'AAAA' } })).toContain('attested');
    const foreign = hardwareRecord().last_challenge;
    expect(contradictions({ ...record, last_challenge: foreign })).toContain('attested');
  });

  test('keeps its trust level after one missed challenge, which only the coordinator can state', () => {
    const missed: AttestationRecord = { ...hardwareRecord(), attested: false };
    expect(contradictions(missed)).toEqual([]);
    expect(finding(missed, 'attested')?.result).toBe('word');
    expect(verifyRecord(missed, NOW, simulated).consistent).toBe(true);
    expect(contradictions({ ...missed, last_challenge: null })).toEqual(['trust_level']);
    expect(contradictions({ ...hardwareRecord({ posture: { sip_enabled: false } }), attested: false })).toEqual(['trust_level']);
  });

  test('has no level above its own word without a sealing key in use', () => {
    const expired: AttestationRecord = { ...hardwareRecord(), key_statement: null };
    expect(contradictions(expired)).toEqual(['trust_level']);
    expect(contradictions({ ...expired, trust_level: 'self_signed' })).toEqual([]);
  });

  test('contradicts protections that the newest challenge reports as off', () => {
    const record = hardwareRecord({ posture: { sip_enabled: false } });
    expect(contradictions(record)).toEqual(['attested', 'trust_level']);
    expect(contradictions({ ...record, attested: false, trust_level: 'self_signed' })).toEqual([]);
  });

  test('has a sealing key that is bound to this attestation', () => {
    const record = hardwareRecord();
    expect(contradictions({ ...record, key_statement: hardwareRecord().key_statement })).toEqual(['key_statement']);
    const forger = generateEnclaveKey();
    expect(contradictions({ ...record, attestation_statement: signed('attestation', { v: 1 }, forger) })).toContain(
      'attestation_statement',
    );
  });

  test('is contradicted, and nothing is thrown, when its attestation is no canonical base64', () => {
    const record = hardwareRecord();
    const { payload, signature } = record.attestation_statement;
    for (const odd of [`${payload}=`, `${payload.replace(/=*$/, '')}A`, '=', 'A']) {
      const found = contradictions({ ...record, attestation_statement: { payload: odd, signature } });
      expect(found).toEqual(expect.arrayContaining(['attestation_statement', 'key_statement']));
    }
  });

  test('may prove a device-management identity by ACME', () => {
    const record = hardwareRecord();
    const token = 'c3RyYWlnaHQ';
    const { now, random } = bench;
    const issue = (freshness: Uint8Array) =>
      bench.authority.issue({ now, random, device: SAMPLE_DEVICE, freshness, extendedKeyUsage: false }).certificates.map(toBase64);
    const proof = { cert_chain_b64: issue(acmeFreshness(token)), token };
    expect(contradictions({ ...record, acme_verified: true, acme_attestation: proof })).toEqual([]);
    expect(contradictions({ ...record, acme_verified: true, acme_attestation: { ...proof, token: 'other' } })).toEqual(['acme_verified']);
  });
});

describe('a feed', () => {
  test('is evaluated record by record, under its own anchor only if that is a simulation', () => {
    const verdict = verifyFeed(feedOf(hardwareRecord(), { ...selfSignedRecord(), memory_gb: 1 }), NOW);
    expect(verdict.anchor).toBe('simulated');
    expect(verdict.records.map(({ consistent }) => consistent)).toEqual([true, false]);
  });

  test("whose own anchor is a simulation is contradicted for a caller that accepts the manufacturer's alone", () => {
    const feed = feedOf(hardwareRecord());
    expect(verifyFeed(feed, NOW)).toMatchObject({ anchor: 'simulated', records: [{ consistent: true, enclave: 'simulated' }] });
    const { anchor, records } = verifyFeed(feed, NOW, 'maker');
    expect(anchor).toBe('maker');
    expect(records).toMatchObject([{ consistent: false, enclave: 'claimed' }]);
  });

  test("cannot pass its own anchor off as Apple's", () => {
    const feed = feedOf(hardwareRecord());
    const verdict = verifyFeed({ ...feed, trust_anchor: { ...feed.trust_anchor, simulated: false } }, NOW);
    expect(verdict.anchor).toBe('maker');
    expect(verdict.records[0]?.consistent).toBe(false);
  });

  test.each([[null], [[]], [{}], [{ ...feedOf(), providers: [{}] }], [{ ...feedOf(), trust_anchor: undefined }]])('%j is none', (value) => {
    expect(() => verifyFeed(value, NOW)).toThrow(FeedError);
  });
});
