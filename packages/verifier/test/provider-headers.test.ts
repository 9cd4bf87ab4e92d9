import { expect, test } from 'vitest';
import { unsupportedHeaders } from '../src/index.js';
import { hardwareRecord, selfSignedRecord } from './published-record.js';

const record = hardwareRecord();
const honest = {
  'X-Provider-Id': record.provider_id,
  'X-Provider-Chip': record.chip_name,
  'X-Provider-Model': record.hardware_model,
  'X-Provider-Serial': record.serial_number,
  'X-Provider-Secure-Enclave': 'true',
  'X-Provider-Attested': 'true',
  'X-Provider-Mda-Verified': 'true',
  'X-Provider-Trust-Level': 'hardware',
  'X-Attestation-Se-Public-Key': record.se_public_key,
  'X-Attestation-Device-Serial': record.serial_number,
};

test('headers that agree with the record are supported, and so are fewer', () => {
  expect(unsupportedHeaders(honest, record)).toEqual([]);
  expect(unsupportedHeaders(new Headers(honest), record)).toEqual([]);
  expect(unsupportedHeaders({}, record)).toEqual([]);
});

test('a header that contradicts the record is not', () => {
  for (const name of Object.keys(honest)) {
    if (/attested|verified|level/i.test(name)) continue;
    expect(unsupportedHeaders({ ...honest, [name]: 'other' }, record)).toEqual([name.toLowerCase()]);
  }
});

test('a header may claim less than the record, and never more', () => {
  const less = { 'X-Provider-Attested': 'false', 'X-Provider-Mda-Verified': 'false', 'X-Provider-Trust-Level': 'self_signed' };
  expect(unsupportedHeaders(less, record)).toEqual([]);
  const fallen = { ...selfSignedRecord(), attested: false };
  const { 'X-Provider-Attested': attested, 'X-Provider-Mda-Verified': mda, 'X-Provider-Trust-Level': level } = honest;
  const more = { 'X-Provider-Attested': attested, 'X-Provider-Mda-Verified': mda, 'X-Provider-Trust-Level': level };
  expect(unsupportedHeaders(more, fallen)).toEqual(['x-provider-attested', 'x-provider-mda-verified', 'x-provider-trust-level']);
});

test('a name beyond ASCII is compared as headers carry it', () => {
  expect(unsupportedHeaders({ 'X-Provider-Chip': 'M? Max' }, { ...record, chip_name: 'M\u00f6 Max' })).toEqual([]);
});
