/** Runs published third-party vectors from the folder VECTORS_DIR, if set. A missing file fails like a wrong result. */
import { expect, test } from 'vitest';
import { deviceChainVectors } from './device-chain-vectors.js';
import { deviceManagementVectors } from './device-management-vectors.js';
import { hpkeVectors } from './hpke-vectors.js';
import { wycheproofVectors } from './wycheproof-vectors.js';

const { VECTORS_DIR: directory = '' } = process.env;

if (directory === '') {
  process.stderr.write(
    '\n*** VECTORS NOT RUN: set VECTORS_DIR to the folder that holds hpke/, wycheproof/, apple-mda/ and device-management/. ***\n\n',
  );
  test('VECTORS_DIR is not set: no published vector was run', () => {
    expect(directory).toBe('');
  });
} else {
  deviceManagementVectors(directory);
  hpkeVectors(directory);
  wycheproofVectors(directory);
  deviceChainVectors(directory);
}
