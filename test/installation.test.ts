/** An installation from start to end, with real programs: install.sh, a service, an update, a failed update, and uninstall. */
import {
  createReadStream,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { PLATFORM } from '../apps/provider/test/update/release-server.js';
import { type CoordinatorAlone, startCoordinatorAlone } from '../scripts/network/network.js';
import { archive } from '../scripts/release/archive.js';
import { addRelease } from '../scripts/release/feed.js';
import { makeReleaseKey, readReleaseKey, signRelease } from '../scripts/release/keys.js';
import { ROOT } from '../scripts/release/manifest.js';
import { measure } from '../scripts/release/pack.js';
import { stage } from '../scripts/release/stage.js';
import { addressOf, closeServer, listenLocally } from './support/local-server.js';
import { runCommand } from './support/run-command.js';
import { temporaryDirectory } from './support/temporary-directory.js';

let coordinator: CoordinatorAlone;
let host: FileHost;
let home: string;
let publicKey: string;
const command = (): string => join(home, '.local/bin/inference-provider');
const prefix = (): string => join(home, '.local/share/inference-provider');
const dataDir = (): string => join(home, '.inference-provider');

beforeAll(async () => {
  home = temporaryDirectory('home');
  publicKey = makeReleaseKey(join(home, 'release-key.pem'));
  writeFileSync(join(home, 'releases.json'), '{"releases":[]}');
  host = await startFileHost(home);
  coordinator = await startCoordinatorAlone(join(home, 'coordinator'), {
    ALLOW_SIMULATED_ENCLAVE: '1',
    AGENT_RELEASES: join(home, 'releases.json'),
  });
  // Replaces the dependencies of a real release.
  mkdirSync(prefix(), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(prefix(), 'node_modules'));
});
afterAll(async () => {
  if (existsSync(command())) await inference('stop', '--manager', 'supervisor');
  await coordinator?.child.stop();
  await host?.close();
});

const run = (program: string, args: readonly string[]) =>
  runCommand(program, args, { env: { PATH: process.env.PATH, HOME: home, SHELL: '/bin/sh' } });
const inference = (...args: string[]) => run(command(), args);

/** Packs this repository's agent as a release. `spoil` damages the unpacked files. */
async function release(version: string, spoil: (folder: string) => void = () => {}): Promise<void> {
  const folder = join(home, `stage-${version}`);
  stage({ folder, version, releaseKeys: [publicKey], demoModels: false });
  spoil(folder);
  const file = join(home, `${version}.tgz`);
  await archive(folder, file);
  rmSync(folder, { recursive: true });
  const facts = {
    version,
    platform: PLATFORM,
    url: `${host.url}/${version}.tgz`,
    ...(await measure(file)),
    node: '20.19.0',
    notes: 'Better.',
  };
  addRelease(join(home, 'releases.json'), signRelease(facts, readReleaseKey(join(home, 'release-key.pem'))));
}

async function rollout(version: string, act: string): Promise<void> {
  const headers = { authorization: `Bearer ${coordinator.adminKey}` };
  // Begins the rollout of a version that was just published.
  await fetch(`${coordinator.baseUrl}/admin/v1/rollouts`, { headers });
  const response = await fetch(`${coordinator.baseUrl}/admin/v1/rollouts/${version}/${act}`, { method: 'POST', headers });
  expect(response.status).toBe(200);
}

/** Status of the provider once it is up and accepts jobs. */
const status = async (): Promise<{ version: string; provider_id: string }> => {
  for (;;) {
    const { code, output } = await inference('status', '--json');
    if (code === 0) return JSON.parse(output) as { version: string; provider_id: string };
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
};

let first: { version: string; provider_id: string };

it('is installed by its script, and runs as a service', async () => {
  await release('0.2.0');
  const installed = await run('sh', [join(ROOT, 'scripts/install.sh'), '--coordinator', coordinator.baseUrl, '--release-key', publicKey]);
  expect(installed, installed.output).toMatchObject({ code: 0 });
  expect(await inference('--version')).toMatchObject({ code: 0, output: '0.2.0\n' });

  const model = join(ROOT, 'apps/provider/demo-models/pico/pico.gguf');
  mkdirSync(dataDir(), { mode: 0o700 });
  writeFileSync(
    join(dataDir(), 'config.toml'),
    `coordinator = "${coordinator.baseUrl}"\nsimulated_enclave = true\n[update]\nautomatic = false\n`,
    { mode: 0o600 },
  );
  expect(await inference('models', 'pull', model)).toMatchObject({ code: 0 });
  const id = JSON.parse((await inference('models', 'list', '--json')).output).data?.[0]?.id ?? 'pico-demo';
  expect(await inference('models', 'use', id)).toMatchObject({ code: 0 });
  const started = await inference('start', '--manager', 'supervisor');
  expect(started, started.output).toMatchObject({ code: 0 });
  first = await status();
  expect(first.version).toBe('0.2.0');
  const headers = { authorization: `Bearer ${coordinator.apiKey}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ model: id, temperature: 0, messages: [{ role: 'user', content: 'What is the capital of France?' }] });
  const answer = await fetch(`${coordinator.baseUrl}/v1/chat/completions`, { method: 'POST', headers, body });
  expect([answer.status, answer.headers.has('x-se-signature'), await answer.text()]).toEqual([200, true, expect.stringContaining('Paris')]);
});

it('updates itself when it is asked', async () => {
  expect(JSON.parse((await inference('update', '--json')).output)).toMatchObject({ outcome: 'current', installed: '0.2.0' });
  await release('0.3.0');
  // A new version is rolled out in stages. An owner waits, or requests the update.
  await rollout('0.3.0', 'pause');
  expect(JSON.parse((await inference('update', '--json')).output)).toMatchObject({
    outcome: 'later',
    version: '0.3.0',
    text: ['The rollout of version 0.3.0 is paused.'],
  });
  expect(await inference('update', '--now')).toMatchObject({
    code: 1,
    output: expect.stringContaining('does not permit an earlier update'),
  });
  await rollout('0.3.0', 'resume');
  expect(JSON.parse((await inference('update', '--check', '--now', '--json')).output)).toMatchObject({
    outcome: 'available',
    version: '0.3.0',
    notes: 'Better.',
  });
  const updated = await inference('update', '--now', '--json');
  expect(JSON.parse(updated.output), updated.output).toMatchObject({ outcome: 'updated', version: '0.3.0' });
  const second = await status();
  expect(second).toMatchObject({ version: '0.3.0', provider_id: first.provider_id });
  expect(existsSync(join(prefix(), 'trial.json'))).toBe(false);
});

it('goes back from a version that does not work, and to the one before when its owner wants that', async () => {
  // A release that reports its version and then cannot serve.
  await release('0.4.0', (folder) => {
    const main = join(folder, 'dist/main.js');
    writeFileSync(main, `if (process.argv[2] === 'serve') { console.error('broken'); process.exit(1); }\nawait import('./whole.js');\n`);
    writeFileSync(join(folder, 'dist/whole.js'), readFileSync(join(ROOT, 'apps/provider/dist/main.js')));
  });
  const failed = await inference('update', '--now', '--json');
  expect(failed).toMatchObject({ code: 1 });
  expect(failed.output).toContain('"outcome":"rolled_back"');
  expect(readlinkSync(join(prefix(), 'current'))).toBe('versions/0.3.0');
  expect(JSON.parse((await inference('update', '--json')).output)).toMatchObject({ outcome: 'broken', version: '0.4.0' });
  expect(await status()).toMatchObject({ version: '0.3.0', provider_id: first.provider_id });

  // Downgrade to the previous release.
  expect(JSON.parse((await inference('update', '--to', '0.2.0', '--json')).output)).toMatchObject({ outcome: 'updated', version: '0.2.0' });
  expect(await status()).toMatchObject({ version: '0.2.0' });
});

it('leaves nothing behind but the identity of the machine', async () => {
  const unasked = await inference('uninstall');
  expect(unasked).toMatchObject({ code: 2, output: expect.stringContaining('Without a terminal') });
  const shown = JSON.parse((await inference('uninstall', '--dry-run', '--delete-data', '--json')).output) as {
    removed: string[];
    kept: string[];
  };
  expect(shown.removed).toEqual(expect.arrayContaining([command(), prefix(), join(dataDir(), 'models'), join(dataDir(), 'config.toml')]));
  expect(shown.kept).toEqual([join(dataDir(), 'enclave')]);
  expect(await status()).toMatchObject({ version: '0.2.0' });
  // The installer delegates to the agent. The linked dependencies are not part of the installation.
  rmSync(join(prefix(), 'node_modules'));
  const removed = await run('sh', [join(ROOT, 'scripts/install.sh'), '--uninstall', '--delete-data', '--yes']);
  expect(removed, removed.output).toMatchObject({ code: 0, output: expect.stringContaining('Removed:') });
  expect([existsSync(prefix()), existsSync(join(home, '.local/bin/inference-provider'))]).toEqual([false, false]);
  // The machine's identity is removed only on explicit request.
  expect(readdirSync(dataDir())).toEqual(['enclave']);
});

interface FileHost {
  readonly url: string;
  close(): Promise<void>;
}

/** HTTP server for the files of a folder, with range requests, like an object store. */
async function startFileHost(folder: string): Promise<FileHost> {
  const server = createServer((request, response) => {
    const path = join(folder, basename(decodeURIComponent((request.url ?? '').split('?')[0] as string)));
    const size = statSync(path, { throwIfNoEntry: false })?.size;
    const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '');
    const start = Number(range?.[1] ?? 0);
    if (size === undefined || start >= size) {
      response.writeHead(size === undefined ? 404 : 416).end();
      return;
    }
    const end = range === null || range[2] === '' ? size - 1 : Math.min(Number(range[2]), size - 1);
    const part = range === null ? {} : { 'content-range': `bytes ${start}-${end}/${size}` };
    response.writeHead(range === null ? 200 : 206, { 'content-length': end - start + 1, ...part });
    createReadStream(path, { start, end }).pipe(response);
  });
  await listenLocally(server);
  return {
    url: addressOf(server),
    close: async () => {
      await closeServer(server);
    },
  };
}
