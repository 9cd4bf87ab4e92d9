/** `models list` beside a running provider. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
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

it('names the models that a provider serves from outside the store', async () => {
  const daemon = await ControlServer.open(dataDir, [get('/v1/status', async () => runningStatus(dataDir))]);
  try {
    expect((await run('models', 'list')).stdout).toMatch(/^Served now: pico-demo\./);
    expect(JSON.parse((await run('models', 'list', '--json')).stdout)).toEqual({ models: [], served: ['pico-demo'] });
  } finally {
    await daemon.close();
  }
  const idle = await run('models', 'list');
  expect(idle.stdout).toContain('this machine serves the small model that ships with this program');
  expect(JSON.parse((await run('models', 'list', '--json')).stdout)).toEqual({ models: [], served: null });
});

it('writes a long list to a pipe in full', async () => {
  const models = Array.from({ length: 1500 }, (_, index) => ({
    id: `model-${index}`,
    file: 'missing.gguf',
    files: ['missing.gguf'],
    sha256: '0'.repeat(64),
    bytes: 1,
    source: 'https://models.example/missing.gguf',
    pulled_at: 0,
    use: null,
  }));
  mkdirSync(join(dataDir, 'models'));
  writeFileSync(join(dataDir, 'models', 'library.json'), JSON.stringify({ version: 1, models }));
  const { stdout } = await run('models', 'list', '--json');
  expect((JSON.parse(stdout) as { models: unknown[] }).models).toHaveLength(models.length);
});
