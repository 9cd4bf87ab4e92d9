import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { program } from '../../../test/support/program.js';

/** Exported as JWK, one of the first two or three thousand pairs stopped the process for good. */
const PAIRS = 10_000;

test('key pairs are made however often memory is collected in between', { timeout: 120_000 }, async () => {
  // The least memory for what is new, so that it is collected often. A process that stands still is ended, and the test fails.
  const argv = ['--max-semi-space-size=1', await program('packages/protocol/test/generate-pairs.ts'), String(PAIRS)];
  const { stdout } = await promisify(execFile)(process.execPath, argv, { timeout: 110_000, killSignal: 'SIGKILL' });
  expect(stdout).toBe(`made ${PAIRS}`);
});
