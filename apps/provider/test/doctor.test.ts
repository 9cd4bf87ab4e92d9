/** What doctor makes of what it finds, and that it ends. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ProviderStatusAnswer } from '@inference/protocol';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { statusLines } from '../src/commands/status-text.js';
import type { DaemonStatus } from '../src/control/daemon-status.js';
import { type Finding, ok, runChecks } from '../src/doctor/check.js';
import { judgeClock, judgeView, reachCoordinator } from '../src/doctor/coordinator-checks.js';
import { checkDataDirectory, checkDisk, checkModel } from '../src/doctor/local-checks.js';
import { startingStatus } from '../src/status-parts.js';
import { demoModel } from './demo-model.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'doctor-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const states = (findings: readonly Finding[]): string[] => findings.map(({ state }) => state);

describe('checks', () => {
  it('end, whatever hangs or throws', async () => {
    const results = await runChecks(
      [
        { name: 'hangs', run: () => new Promise(() => {}) },
        { name: 'throws', run: () => Promise.reject(new Error('broken')) },
        { name: 'works', run: async () => [ok('fine')] },
      ],
      50,
    );
    expect(results.map(({ name, state }) => `${name} ${state}`)).toEqual(['hangs problem', 'throws problem', 'works ok']);
    for (const { state, remedy } of results) expect(remedy === null).toBe(state === 'ok');
  });
});

describe('this machine', () => {
  it('needs a data directory that is its own', async () => {
    expect(states(await checkDataDirectory(join(folder, 'none')))).toEqual(['problem']);
    expect(states(await checkDataDirectory(folder))).toEqual(['ok']);
    writeFileSync(join(folder, 'file'), '');
    expect(states(await checkDataDirectory(join(folder, 'file')))).toEqual(['problem']);
    mkdirSync(join(folder, 'enclave'));
    chmodSync(join(folder, 'enclave'), 0o755);
    expect((await checkDataDirectory(folder))[0]?.remedy).toContain('chmod 700');
    expect(states(await checkDisk(join(folder, 'none')))).toEqual(['skipped']);
  });

  it('needs a model that can be read', async () => {
    expect(states(await checkModel(demoModel()))).toEqual(['ok']);
    writeFileSync(join(folder, 'broken.gguf'), 'GGUF and then nothing');
    expect(states(await checkModel(join(folder, 'broken.gguf')))).toEqual(['problem']);
    expect(states(await checkModel(null))).toEqual(['skipped']);
  });

  it('needs a clock that is about right, and a coordinator that answers', async () => {
    expect([null, 0, -12_000, 90_000].map((skew) => states(judgeClock(skew))[0])).toEqual(['skipped', 'ok', 'note', 'problem']);
    expect(states((await reachCoordinator('http://127.0.0.1:9')).findings)).toEqual(['problem']);
    expect(states((await reachCoordinator(null)).findings)).toEqual(['skipped']);
  });
});

const base = startingStatus(
  { dataDir: '/d', socketUrl: 'ws://h/provider/v1/socket', simulatedEnclave: true, models: [{ path: '/pico.gguf' }] },
  0,
);
const view: ProviderStatusAnswer = {
  object: 'provider.status',
  provider_id: '0'.repeat(32) as ProviderStatusAnswer['provider_id'],
  serial_number: 'S',
  chip_name: 'M4',
  agent: { name: 'inference-provider', version: '1' },
  connected_at: '2026-01-01T00:00:00.000Z',
  server_time: '2026-01-01T00:00:00.000Z',
  status: 'online',
  status_remedy: null,
  gate: null,
  trust_level: 'self_signed',
  trust_parts: [],
  slots: 4,
  running_jobs: 0,
  host: { thermal: 'nominal', memory_pressure: 'normal', power: 'mains' },
  models: [],
  placements: 3,
  share: 0.25,
  decisions: [
    {
      model: 'pico',
      outcome: 'not_chosen',
      reason: 'slower',
      text: 'Not chosen: slower by 2.1 s.\u001b[2J',
      slower_by_ms: 2100,
      count: 7,
      first_at: '2026-01-01T00:00:00.000Z',
      last_at: '2026-01-01T00:05:06.000Z',
    },
  ],
  reputation: { state: 'well', reason: null, since: null, until: null, recent_failures: 0, held_off_until: null },
  earnings: { of: 'machine', today_micro_usd: 1234, total_micro_usd: 12_345_678 },
  next_steps: [{ code: 'no_demand', text: `Nothing asks for this model at the moment, and ${'so it is '.repeat(12)}.`, model: 'pico' }],
};
const running: DaemonStatus = {
  ...base,
  state: 'running',
  engine: 'ready',
  connection: { state: 'connected', since: 0, problem: null, retry_at: null },
  trust: { type: 'trust', trust_level: 'self_signed', routable: true, status: 'online', parts: [] },
  models: [{ id: 'pico', context_length: 1024 }],
  coordinator_view: view,
  coordinator_problem: null,
};

describe('the coordinator’s view', () => {
  it('is a problem where no jobs come, and advice where they could be more', () => {
    expect(judgeView(running)).toMatchObject([{ state: 'note', text: 'advice: no_demand' }]);
    expect(judgeView({ ...running, coordinator_view: { ...view, next_steps: [{ code: 'nothing', text: 'Nothing.' }] } })).toMatchObject([
      { state: 'ok' },
    ]);
    expect(states(judgeView({ ...running, models: [] }))).toContain('problem');
    expect(states(judgeView(base))).toEqual(['note']);
    const lost = { state: 'not_connected', since: 0, problem: 'refused', retry_at: 5 } as const;
    expect(judgeView({ ...running, connection: lost })).toMatchObject([{ state: 'problem', text: expect.stringContaining('refused') }]);
    const parts = [{ name: 'posture', state: 'failed' as const, reason: 'sip_disabled', remedy: 'Turn it on.' }];
    const untrusted = { ...running, trust: { type: 'trust', trust_level: 'none', routable: false, status: 'untrusted', parts } as const };
    expect(judgeView({ ...untrusted, trust: { ...untrusted.trust, parts } })).toMatchObject([
      { state: 'problem' },
      { state: 'problem', remedy: 'Turn it on.' },
      { state: 'note' },
    ]);
  });

  it('reads well in 80 columns, whatever it holds', () => {
    const lines = statusLines(running, 60_000);
    const text = lines.join('\n');
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(80);
    expect(text).toContain('  00:05:06  Not chosen: slower by 2.1 s. [2J (7 times) pico');
    expect(text).toContain('Earned       $0.001234 today, $12.345678 in all (this machine)');
    expect(text).toContain('of all that were placed: 25 %');
    expect(text).not.toContain('\u001b');
    expect(statusLines(base, 0).join('\n')).toContain('the provider is still starting');
  });
});
