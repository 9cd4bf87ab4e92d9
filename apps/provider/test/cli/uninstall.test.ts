/** `uninstall` reports exactly what it removes and what it keeps. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ControlServer } from '../../src/control/control-server.js';
import { get } from '../../src/control/route.js';
import { runCommand, runningStatus } from '../support/owner-command.js';

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'owner-'));
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));
const run = (...args: readonly string[]) => runCommand(dataDir, ...args);

const put = (name: string): string => {
  const path = join(dataDir, name);
  writeFileSync(path, '');
  return path;
};

it('reports only remaining files as kept', async () => {
  const [config, account, socket] = [put('config.toml'), put('account.json'), put('control.sock')];
  const { code, stdout } = await run('uninstall', '--yes', '--keep-data', '--json');
  expect(code).toBe(0);
  const said = JSON.parse(stdout) as { removed: string[]; kept: string[] };
  expect(said.kept).toEqual([config]);
  expect(said.removed).toEqual(expect.arrayContaining([account, socket]));
  expect([config, account, socket].map((path) => existsSync(path))).toEqual([true, false, false]);
});

it('does not call the socket of a running provider a remnant', async () => {
  put('config.toml');
  const daemon = await ControlServer.open(dataDir, [get('/v1/status', async () => runningStatus(dataDir))]);
  try {
    const { stdout } = await run('uninstall', '--dry-run', '--keep-data');
    expect(stdout).toMatch(/^Would be removed:\n(?: {2}.*\n)* {2}\S+control\.sock \(socket of the provider\)$/m);
    expect(stdout).toMatch(/^Kept:\n {2}\S+config\.toml \(settings/m);
  } finally {
    await daemon.close();
  }
});
