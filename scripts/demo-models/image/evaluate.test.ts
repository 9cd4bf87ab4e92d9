import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { temporaryDirectory } from '../../../test/support/temporary-directory.js';

const PICTO = fileURLToPath(new URL('../../../apps/provider/demo-models/picto', import.meta.url));
const EVALUATE = fileURLToPath(new URL('evaluate.mjs', import.meta.url));

it('counts a picture with the requested ground, and prints one without the requested figure', async () => {
  const questions = join(temporaryDirectory('image-questions'), 'questions.jsonl');
  const figures = [{ shape: 'star', colour: 'yellow', size: null, place: null }];
  writeFileSync(questions, `${JSON.stringify({ prompt: 'a red circle on a blue background', figures, ground: 'blue' })}\n`);
  const args = ['--import', 'tsx', EVALUATE, PICTO, questions, '--size', '128x128'];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  expect(stdout).toContain('| one figure: ground | 1 of 1 |');
  expect(stdout).toContain('red circle');
  expect(stdout).toContain('| one figure: everything | 0 of 1 |');
});
