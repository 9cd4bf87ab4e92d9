/**
 * Equal sources give equal bytes: bundles, archives and bills of materials, whatever the folder, time zone, language and umask.
 * `npm run release -- verify-reproducible` compares whole releases, with the compiler, the console and the client.
 */
import { execFile } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { temporaryDirectory } from '../../test/support/temporary-directory.js';
import { archive } from './archive.js';
import { writeSums } from './artifacts.js';
import { ROOT } from './manifest.js';
import { measure } from './pack.js';
import { sbomOf } from './sbom.js';
import { filesBelow, stage } from './stage.js';
import { stageCoordinator } from './stage-coordinator.js';

const run = promisify(execFile);
/** Folders of equal depth, because bundles contain relative paths to packages. */
const PLACES = [
  { folder: 'a', env: { TZ: 'UTC', LC_ALL: 'C' }, umask: '022' },
  { folder: 'b c', env: { TZ: 'Pacific/Kiritimati', LC_ALL: 'tr_TR.UTF-8' }, umask: '077' },
] as const;

/** SHA-256 of each file of a bundle made in a copy of a workspace. */
async function bundle(workspace: string, work: string, { folder, env, umask }: (typeof PLACES)[number]): Promise<Record<string, string>> {
  const copy = join(work, folder, workspace);
  mkdirSync(dirname(copy), { recursive: true });
  cpSync(join(ROOT, workspace, 'src'), join(copy, 'src'), { recursive: true, filter: (path) => !path.includes('.bundle.js') });
  for (const file of ['package.json', 'tsconfig.json']) copyFileSync(join(ROOT, workspace, file), join(copy, file));
  copyFileSync(join(ROOT, 'tsconfig.base.json'), join(work, folder, 'tsconfig.base.json'));
  symlinkSync(join(ROOT, 'node_modules'), join(work, folder, 'node_modules'));
  symlinkSync(join(ROOT, workspace, 'node_modules'), join(copy, 'node_modules'));
  const { scripts } = JSON.parse(readFileSync(join(copy, 'package.json'), 'utf8')) as { scripts: { bundle: string } };
  const entries = scripts.bundle.match(/src\/[\w/.-]+\.ts/g) ?? [];
  const script = `umask ${umask}; exec "$0" "$@"`;
  const bundler = join(ROOT, 'scripts/bundle/run.mjs');
  await run('sh', ['-c', script, process.execPath, bundler, ...entries], { cwd: copy, env: { PATH: process.env.PATH, ...env } });
  const files = filesBelow(join(copy, 'dist'));
  return Object.fromEntries(
    await Promise.all(files.map(async (file) => [file, (await measure(join(copy, 'dist', file))).sha256] as const)),
  );
}

it.each(['apps/coordinator', 'apps/provider'])('the bundle of %s is the same bytes in another folder', async (workspace) => {
  const work = temporaryDirectory('reproducible');
  const [first, second] = [await bundle(workspace, work, PLACES[0]), await bundle(workspace, work, PLACES[1])];
  expect(Object.keys(first)).toContain('main.js');
  expect(second).toEqual(first);
});

it('archives are the same bytes with another umask', async () => {
  const work = temporaryDirectory('reproducible');
  const umask = process.umask();
  const sums: string[] = [];
  try {
    for (const [index, mask] of [0o022, 0o077].entries()) {
      process.umask(mask);
      const folder = join(work, String(index));
      mkdirSync(join(folder, 'out'), { recursive: true });
      stage({ folder: join(folder, 'agent'), version: '1.2.3', releaseKeys: [], demoModels: false });
      await archive(join(folder, 'agent'), join(folder, 'out/agent.tgz'));
      stageCoordinator({ folder: join(folder, 'coordinator'), version: '1.2.3', repository: 'https://example.com/a/b' });
      await archive(join(folder, 'coordinator'), join(folder, 'out/coordinator.tgz'));
      expect(await writeSums(join(folder, 'out'))).toEqual(['agent.tgz', 'coordinator.tgz']);
      sums.push(readFileSync(join(folder, 'out/SHA256SUMS'), 'utf8'));
    }
  } finally {
    process.umask(umask);
  }
  expect(sums[1]).toBe(sums[0]);
  const manifest = JSON.parse(readFileSync(join(work, '0/coordinator/package.json'), 'utf8')) as Record<string, unknown>;
  expect(manifest).toMatchObject({ name: 'inference-coordinator', repository: { url: 'git+https://example.com/a/b.git' } });
  expect(Object.keys(manifest.dependencies as object)).toContain('better-sqlite3');
  expect(Object.keys(manifest.dependencies as object)).not.toContain('fastify');
});

it('a bill of materials is the same each time, and has only what the program uses', async () => {
  const options = { workspace: 'packages/client', name: '@inference/client', version: '1.2.3', createdAt: new Date(0) };
  const [first, second] = [await sbomOf(options), await sbomOf(options)];
  expect(second).toBe(first);
  const bom = JSON.parse(first) as { components: { name: string; hashes: unknown[] }[] };
  expect(bom).toMatchObject({
    serialNumber: expect.stringMatching(/^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/),
    metadata: { timestamp: '1970-01-01T00:00:00.000Z', component: { name: 'client', version: '1.2.3' } },
  });
  const names = bom.components.map(({ name }) => name);
  expect(names).toContain('typebox');
  expect(names).not.toContain('openai');
  for (const { hashes } of bom.components) expect(hashes).not.toEqual([]);
});

it('a bill of materials for one platform leaves out packages of others', async () => {
  const options = { workspace: 'apps/provider', name: 'inference-provider', version: '1.2.3', createdAt: new Date(0) };
  const bom = JSON.parse(await sbomOf({ ...options, platform: 'linux-x64' })) as { components: { name: string }[] };
  const names = bom.components.map(({ name }) => name);
  expect(names.filter((name) => name.startsWith('@fugood/'))).toEqual(['@fugood/node-llama-linux-x64']);
});
