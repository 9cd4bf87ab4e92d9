/** Checks of `doctor` and their time limit. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import type { ProviderStatusAnswer, Release } from '@inference/protocol';
import { describe, expect, it } from 'vitest';
import { closeServer, listenLocally } from '../../../../test/support/local-server.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { statusLines } from '../../src/cli/output/status-text.js';
import type { DaemonStatus } from '../../src/control/daemon-status.js';
import { startingStatus } from '../../src/daemon/status.js';
import { type Finding, ok, runChecks } from '../../src/doctor/check.js';
import { checkSecrets, checkService, checkSettings } from '../../src/doctor/configuration-checks.js';
import { checkAccount, checkClock, checkCoordinatorView, checkTraffic } from '../../src/doctor/coordinator-checks.js';
import { checkEnclave } from '../../src/doctor/enclave-check.js';
import { checkCommand, checkUpdates } from '../../src/doctor/installation-checks.js';
import { checkDataDirectory, checkDisk, checkModel, parsePmset, sleepFindings } from '../../src/doctor/machine-checks.js';
import { checkModelFiles } from '../../src/doctor/model-checks.js';
import { reachCoordinator } from '../../src/doctor/network-check.js';
import { FileHashes } from '../../src/models/file-hash.js';
import { ModelStore } from '../../src/models/store/model-store.js';
import type { ServiceManager, ServiceState } from '../../src/service/service.js';
import { UpdateError } from '../../src/update/releases.js';
import { readTrial, rollBack, switchTo, type Trial } from '../../src/update/trial.js';
import { demoModel } from '../demo-model.js';

const folder = temporaryDirectory('doctor');

const states = (findings: readonly Finding[]): string[] => findings.map(({ state }) => state);

describe('checks', () => {
  it('end, even if a check hangs or throws', async () => {
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
  it('needs a private data directory', async () => {
    expect(states(await checkDataDirectory(join(folder, 'none')))).toEqual(['problem']);
    expect(states(await checkDataDirectory(folder))).toEqual(['ok']);
    writeFileSync(join(folder, 'file'), '');
    expect(states(await checkDataDirectory(join(folder, 'file')))).toEqual(['problem']);
    mkdirSync(join(folder, 'enclave'));
    chmodSync(join(folder, 'enclave'), 0o755);
    expect((await checkDataDirectory(folder))[0]?.remedy).toContain('chmod 700');
    expect(states(await checkDisk(join(folder, 'none')))).toEqual(['skipped']);
  });

  it('needs a readable model', async () => {
    const asMuchAsFits = { slots: null, context: null, kvCacheType: 'f16', reserve: null } as const;
    const demo = { path: demoModel(), projectorPath: null };
    expect(states(await checkModel(demo, asMuchAsFits))).toEqual(['ok']);
    expect(await checkModel(demo, { ...asMuchAsFits, reserve: totalmem() })).toMatchObject([
      { state: 'problem', remedy: expect.stringContaining('reserve_gb') },
    ]);
    writeFileSync(join(folder, 'broken.gguf'), 'GGUF and then nothing');
    expect(states(await checkModel({ ...demo, path: join(folder, 'broken.gguf') }, asMuchAsFits))).toEqual(['problem']);
    expect(states(await checkModel(null, asMuchAsFits))).toEqual(['skipped']);
  });

  it('needs a nearly correct clock and a reachable coordinator', async () => {
    expect([null, 0, -12_000, 90_000].map((skew) => states(checkClock(skew))[0])).toEqual(['skipped', 'ok', 'note', 'problem']);
  });

  it('needs valid settings, and lists settings that need a restart', async () => {
    const path = join(folder, 'config.toml');
    expect(states(await checkSettings(folder, null))).toEqual(['ok']);
    writeFileSync(path, 'log_level = "info"\n[update]\nautomatik = false\n');
    expect(await checkSettings(folder, null)).toMatchObject([{ state: 'problem', text: expect.stringContaining(`${path}:3:1`) }]);
    writeFileSync(path, '[update]\nautomatic = false\n');
    const waiting = { ...running, settings: { ...running.settings, needs_restart: ['models.slots'] } };
    expect(await checkSettings(folder, waiting)).toMatchObject([{ state: 'note', text: expect.stringContaining('models.slots') }]);
  });

  it('reports settings that are no file, without a line number', async () => {
    const odd = mkdtempSync(join(folder, 'data-'));
    mkdirSync(join(odd, 'config.toml'));
    const [found] = await checkSettings(odd, null);
    expect(found).toMatchObject({ state: 'problem', text: expect.stringContaining('cannot be read (EISDIR)') });
    expect(found?.remedy).not.toContain('line');
  });

  it('reports the location of a damaged key', async () => {
    const odd = mkdtempSync(join(folder, 'data-'));
    mkdirSync(join(odd, 'enclave'), { mode: 0o700 });
    writeFileSync(join(odd, 'enclave/enclave-key.json'), '{', { mode: 0o600 });
    expect(await checkEnclave(odd, false, true, '1.0.0')).toMatchObject([
      {
        state: 'problem',
        text: expect.stringContaining('damaged'),
        remedy: expect.stringContaining(`The key is in ${join(odd, 'enclave')}`),
      },
    ]);
  });

  it('needs private modes of its secrets', async () => {
    const own = mkdtempSync(join(folder, 'data-'));
    mkdirSync(join(own, 'enclave'), { mode: 0o700 });
    writeFileSync(join(own, 'enclave/key.json'), '', { mode: 0o600 });
    writeFileSync(join(own, 'account.json'), '', { mode: 0o600 });
    expect(states(await checkSecrets(own))).toEqual(['ok']);
    chmodSync(join(own, 'enclave/key.json'), 0o640);
    chmodSync(join(own, 'account.json'), 0o604);
    const findings = await checkSecrets(own);
    expect(states(findings)).toEqual(['problem', 'problem']);
    expect(findings.map(({ remedy }) => remedy)).toContain(`Run: chmod go= '${join(own, 'enclave/key.json')}'`);
  });

  it('needs a service, and the command on the PATH', async () => {
    const manager = (state: ServiceState) => ({ name: 'launchd', state: async () => state }) as unknown as ServiceManager;
    const looked = async (state: ServiceState, status: DaemonStatus | null) =>
      states(await checkService(manager(state), 'label', status, false, () => null))[0];
    expect(await looked({ kind: 'running', pid: 1 }, running)).toBe('ok');
    expect(await looked({ kind: 'running', pid: 1 }, null)).toBe('problem');
    expect(await looked({ kind: 'waiting', lastExit: '1' }, null)).toBe('problem');
    expect(await looked({ kind: 'not_running' }, running)).toBe('note');
    expect(await looked({ kind: 'not_running' }, null)).toBe('skipped');
    expect(await checkService(manager({ kind: 'not_running' }), 'label', running, false, () => 'gpu-7.service')).toEqual([
      { state: 'ok', text: 'the provider runs under systemd, as gpu-7.service', remedy: null },
    ]);
    for (const state of [{ kind: 'running', pid: running.pid + 1 } as const, { kind: 'waiting', lastExit: '1' } as const]) {
      expect(await checkService(manager(state), 'label', running, false, () => 'gpu-7.service')).toMatchObject([
        { state: 'problem', text: expect.stringContaining('as gpu-7.service, and launchd tries to run a second one') },
      ]);
    }
    expect(await checkService(manager({ kind: 'running', pid: running.pid }), 'label', running, false, () => 'own.service')).toMatchObject([
      { state: 'ok' },
    ]);

    const prefix = mkdtempSync(join(folder, 'prefix-'));
    const found = { kind: 'own', prefix, version: '1.0.0', root: prefix } as const;
    for (const place of ['bin', 'on-path', 'other']) mkdirSync(join(prefix, place));
    writeFileSync(join(prefix, 'bin/inference-provider'), '', { mode: 0o755 });
    writeFileSync(join(prefix, 'other/inference-provider'), '', { mode: 0o755 });
    symlinkSync(join(prefix, 'bin/inference-provider'), join(prefix, 'on-path/inference-provider'));
    const path = (...names: string[]): string => names.map((name) => join(prefix, name)).join(':');
    expect(states(await checkCommand(found, path('none')))).toEqual(['note']);
    expect(states(await checkCommand(found, path('none', 'on-path', 'other')))).toEqual(['ok']);
    expect(states(await checkCommand(found, path('other', 'on-path')))).toEqual(['problem']);

    const remedyOf = async (root: string) => (await checkCommand({ kind: 'npm', version: '1.0.0', root }, ''))[0]?.remedy;
    expect(await remedyOf('/home/ada/.npm/lib/node_modules/inference-provider')).toContain('"/home/ada/.npm/bin:$PATH"');
    expect(await remedyOf('/srv/app/node_modules/inference-provider')).toContain('"/srv/app/node_modules/.bin:$PATH"');
  });

  it('reports newer versions, versions on trial and failed versions', async () => {
    const prefix = mkdtempSync(join(folder, 'prefix-'));
    mkdirSync(join(prefix, 'versions/1.0.0'), { recursive: true });
    mkdirSync(join(prefix, 'versions/1.1.0'));
    symlinkSync('versions/1.0.0', join(prefix, 'current'));
    const found = { kind: 'own', prefix, version: '1.0.0', root: prefix } as const;
    const view = { found, automatic: true };
    expect(states(await checkUpdates({ ...view, findUpdate: async () => ({ kind: 'current', later: null }) }))).toEqual(['ok']);
    expect(states(await checkUpdates({ ...view, findUpdate: null }))).toEqual(['skipped']);
    expect(states(await checkUpdates({ ...view, findUpdate: () => Promise.reject(new UpdateError('no answer', true)) }))).toEqual([
      'skipped',
    ]);
    const release = { version: '1.1.0' } as Release;
    const update = async () => ({ kind: 'update', release }) as const;
    expect((await checkUpdates({ ...view, findUpdate: update }))[0]?.remedy).toContain('Installed automatically');
    expect((await checkUpdates({ ...view, automatic: false, findUpdate: update }))[0]?.remedy).toContain('Automatic updates are off');
    expect((await checkUpdates({ ...view, found: { ...found, kind: 'npm' }, findUpdate: update }))[0]?.remedy).toContain('npm install -g');
    switchTo(prefix, '1.1.0', 1000, 1);
    expect((await checkUpdates({ ...view, findUpdate: null }))[0]?.text).toContain('not proved itself yet');
    rollBack(prefix, readTrial(prefix) as Trial, 'it ended', 1);
    expect((await checkUpdates({ ...view, findUpdate: null }))[0]).toMatchObject({
      state: 'note',
      text: 'version 1.1.0 failed on this machine: it ended',
    });
  });

  it('reports missing, truncated and damaged models', async () => {
    const directory = mkdtempSync(join(folder, 'models-'));
    const store = new ModelStore(directory);
    const hashes = new FileHashes(join(directory, 'hashes.json'));
    const signal = new AbortController().signal;
    const looked = async (): Promise<string[]> => states(await checkModelFiles(store, hashes, signal));
    expect(await looked()).toEqual(['skipped']);
    const file = join(directory, 'a.gguf');
    writeFileSync(file, 'weights');
    const sha256 = await hashes.hashFile(file);
    store.put({ id: 'a', file: 'a.gguf', files: ['a.gguf'], sha256, bytes: 7, source: 'test', pulled_at: 1, use: 'always' });
    expect(await looked()).toEqual(['ok']);
    writeFileSync(file, 'WEIGHTS');
    utimesSync(file, 1, 1);
    expect(await looked()).toEqual(['problem']);
    writeFileSync(file, 'weigh');
    expect(await looked()).toEqual(['problem']);
    rmSync(file);
    expect(await checkModelFiles(store, hashes, signal)).toMatchObject([{ state: 'problem', text: expect.stringContaining('is missing') }]);
  });

  it('sleeps as pmset says', () => {
    // Recorded on macOS, with the notes behind some numbers.
    const recorded = `Battery Power:
 Sleep On Power Button 1
 lowpowermode         0
 standby              1
 sleep                1 (sleep prevented by sharingd)
 displaysleep         2
AC Power:
 Sleep On Power Button 1
 womp                 1
 autorestart          0
 sleep                10
 tcpkeepalive         1
`;
    expect(parsePmset(recorded)).toMatchObject({ 'Battery Power': { sleep: 1 }, 'AC Power': { sleep: 10, autorestart: 0, womp: 1 } });
    expect(sleepFindings(parsePmset(recorded))).toMatchObject([
      { state: 'note', text: expect.stringContaining('after 10 min') },
      { state: 'note' },
    ]);
    expect(states(sleepFindings({ 'AC Power': { sleep: 0, autorestart: 1 } }))).toEqual(['ok']);
    expect(states(sleepFindings(parsePmset('nothing of the kind')))).toEqual(['skipped']);
  });

  it('reaches its coordinator, or reports the failing step', async () => {
    const answer = async (status: number, location = '', body = '{"status":"ok"}') => {
      const server = createServer((_request, response) => response.writeHead(status, { location }).end(body));
      const url = await listenLocally(server);
      const found = await reachCoordinator(url, {});
      await closeServer(server);
      return { ...found.findings[0], url, skewMs: found.skewMs };
    };
    expect(await answer(200)).toMatchObject({ state: 'ok', skewMs: expect.any(Number) });
    expect(await answer(503)).toMatchObject({ state: 'problem', text: expect.stringContaining('503') });
    expect((await answer(302, 'http://sign.in/')).remedy).toContain('Wi-Fi');
    expect(await answer(200, '/', '<html>Sign in</html>')).toMatchObject({
      state: 'problem',
      remedy: expect.stringContaining('Wi-Fi'),
      skewMs: null,
    });
    const { url } = await answer(200);
    expect(await reachCoordinator(url, {})).toMatchObject({ findings: [{ text: expect.stringContaining('ECONNREFUSED') }], skewMs: null });
    expect(states((await reachCoordinator(url, { HTTPS_PROXY: 'http://proxy' })).findings)).toEqual(['problem', 'note']);
    expect((await reachCoordinator('https://no.such.name.invalid', {})).findings[0]?.text).toContain('no.such.name.invalid is not found');
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
  it('is a problem without jobs, and a note with fewer jobs than possible', () => {
    expect(checkCoordinatorView(running)).toMatchObject([{ state: 'note', text: 'advice: no demand (pico)' }]);
    expect(
      checkCoordinatorView({ ...running, coordinator_view: { ...view, next_steps: [{ code: 'nothing', text: 'Nothing.' }] } }),
    ).toMatchObject([{ state: 'ok' }]);
    expect(states(checkCoordinatorView({ ...running, models: [] }))).toContain('problem');
    expect(states(checkCoordinatorView(base))).toEqual(['note']);
    const lost = { state: 'not_connected', since: 0, problem: 'refused', retry_at: 5 } as const;
    expect(checkCoordinatorView({ ...running, connection: lost })).toMatchObject([
      { state: 'problem', text: expect.stringContaining('refused') },
    ]);
    const parts = [{ name: 'posture', state: 'failed' as const, reason: 'sip_disabled', remedy: 'Turn it on.' }];
    const untrusted = { ...running, trust: { type: 'trust', trust_level: 'none', routable: false, status: 'untrusted', parts } as const };
    expect(checkCoordinatorView({ ...untrusted, trust: { ...untrusted.trust, parts } })).toMatchObject([
      { state: 'problem' },
      { state: 'problem', remedy: 'Turn it on.' },
      { state: 'note' },
    ]);
    // The network check has named the cause.
    expect(states(checkCoordinatorView({ ...running, connection: lost }, false))).toEqual(['skipped']);
  });

  it('names each cause once', () => {
    const remedy = 'Run "inference-provider setup --enrol".';
    const missing = (name: string, reason: string, text: string) => ({ name, state: 'missing' as const, reason, remedy: text });
    const parts = [
      missing('device_management', 'not_enrolled', remedy),
      missing('device_chain', 'chain_missing', 'Wait.'),
      missing('key_binding', 'binding_missing', 'Wait.'),
    ];
    const trust = { type: 'trust', trust_level: 'self_signed', routable: false, status: 'below_min_trust_level', parts } as const;
    const status_remedy = `This network sends requests only to machines of trust level hardware. ${remedy}`;
    const next_steps = [
      { code: 'below_min_trust_level', text: status_remedy },
      { code: 'not_enrolled', text: remedy },
      { code: 'not_linked', text: 'Log in.' },
    ];
    const models = [{ id: 'pico', routable: false, gate: 'below_min_trust_level' }] as unknown as typeof view.models;
    const below = { ...running, trust: { ...trust, parts, status_remedy }, coordinator_view: { ...view, models, next_steps } };
    expect(checkCoordinatorView(below)).toEqual([
      { state: 'problem', text: 'this machine gets no requests: below min trust level', remedy: status_remedy },
    ]);
    const wrongAddress = { state: 'other_coordinator', account_name: null, reason: null, remedy: 'Correct it.' } as const;
    expect(states(checkAccount(wrongAddress, false))).toEqual(['note']);
    expect(states(checkAccount(wrongAddress))).toEqual(['problem']);
  });

  it('reports the placed requests, and why not more', () => {
    expect(checkTraffic(base)).toMatchObject([{ state: 'skipped' }]);
    expect(checkTraffic(running).map(({ text }) => text)).toEqual([
      '3 requests, 25% of all placed requests',
      'pico: Not chosen: slower by 2.1 s.\u001b[2J (7 times)',
    ]);
    expect(checkTraffic({ ...running, coordinator_view: { ...view, share: null, decisions: [] } })).toMatchObject([{ state: 'ok' }]);
  });

  it('fits 80 columns with any content', () => {
    const lines = statusLines(running, 60_000);
    const text = lines.join('\n');
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(80);
    expect(text).toContain('  00:05:06  Not chosen: slower by 2.1 s. [2J (7 times) pico');
    expect(text).toContain('Earned       $0.001234 today (UTC), $12.345678 in all; held until an account');
    expect(text).not.toContain('\u001b');
    expect(statusLines(base, 0).join('\n')).toContain('the provider is still starting');
  });
});
