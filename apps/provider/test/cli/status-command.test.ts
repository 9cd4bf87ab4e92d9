/** `status` for scripts. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { runCommand } from '../support/owner-command.js';

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'owner-'));
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));
const run = (...args: readonly string[]) => runCommand(dataDir, ...args);

it('prints JSON with --json when no provider runs', async () => {
  const { code, stdout, stderr } = await run('status', '--json');
  expect(JSON.parse(stdout)).toEqual({ state: 'not_running', problem: expect.stringMatching(/./) });
  expect([code, stderr]).toEqual([3, '']);
  expect(await run('status')).toMatchObject({ code: 3, stdout: '', stderr: expect.stringMatching(/./) });
});
