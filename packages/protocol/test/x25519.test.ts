import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { program } from '../../../test/support/program.js';

/** With JWK export, one of the first 2,000–3,000 pairs deadlocked the process. */
const PAIRS = 10_000;

test('key pairs are made however often memory is collected in between', { timeout: 120_000 }, async () => {
  // A minimal young generation forces frequent collections. A deadlocked process is killed and fails the test.
  const argv = ['--max-semi-space-size=1', await program('packages/protocol/test/generate-pairs.ts'), String(PAIRS)];
  const { stdout } = await promisify(execFile)(process.execPath, argv, { timeout: 110_000, killSignal: 'SIGKILL' });
  expect(stdout).toBe(`made ${PAIRS}`);
});
