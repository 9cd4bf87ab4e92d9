/** The `models` commands, and how `serve` uses the model store. */
import { execFile } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { rowOf } from '../../src/cli/commands/models/list.js';
import { modelChoices } from '../../src/cli/input/model-choices.js';
import { ModelStore } from '../../src/models/store/model-store.js';
import { demoModel } from '../demo-model.js';
import { tinyImageModel } from '../image-model.js';

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const dir = temporaryDirectory('commands');
const run = (...args: string[]) => promisify(execFile)(process.execPath, [MAIN, 'models', ...args, '--data-dir', dir]);
const serve = (...models: string[]) => modelChoices(models.length === 0 ? undefined : models, new ModelStore(join(dir, 'models')));

test('a model is pulled, listed, used, served and removed', async () => {
  expect(serve()).toEqual([{ path: demoModel(), keep: { kind: 'always' } }]);
  const pulled = JSON.parse((await run('pull', demoModel(), '--id', 'mine', '--json')).stdout.trim().split('\n').at(-1) ?? '');
  expect(pulled).toMatchObject({ type: 'pulled', id: 'mine', sha256: expect.stringMatching(/^[0-9a-f]{64}$/), use: null });
  const listed = JSON.parse((await run('list', '--json')).stdout);
  expect(listed.models).toMatchObject([{ id: 'mine', type: 'text', fits: true, use: null, problem: null }]);
  expect((await run('use', 'mine', '--keep', '15')).stdout).toContain('mine is served from the next start on');
  const choice = { path: demoModel(), keep: { kind: 'idle', minutes: 15 }, id: 'mine', sha256: pulled.sha256 };
  expect(serve()).toEqual([choice]);
  expect(serve('mine@on_demand')).toEqual([{ ...choice, keep: { kind: 'on_demand' } }]);
  const kept = (await run('rm', 'mine').catch((error: unknown) => error)) as { code: number; stderr: string };
  expect(kept).toMatchObject({ code: 2, stderr: expect.stringContaining('This machine serves mine.') });
  expect((await run('rm', 'mine', '--yes')).stdout).toContain('Removed mine.');
  const failed = (await run('rm', 'mine').catch((error: unknown) => error)) as { code: number; stderr: string };
  expect(failed).toMatchObject({ code: 1, stderr: 'There is no model mine; see: inference-provider models list.\n' });
});

test('invalid arguments are usage errors, and a bare `models` lists its commands', async () => {
  const refused = async (...args: string[]) => (await run(...args).catch((error: unknown) => error)) as { code: number; stderr: string };
  expect(await refused('list', '--jsno')).toMatchObject({ code: 2, stderr: expect.stringContaining('(did you mean --json?)') });
  expect(await refused('use', 'mine', '--keep', 'forever')).toMatchObject({ code: 2, stderr: expect.stringContaining('--keep must be') });
  expect(await refused('pull', demoModel(), '--sha256', 'ab')).toMatchObject({ code: 2 });
  expect(await refused('pull', demoModel(), '--id', '')).toMatchObject({ code: 2, stderr: expect.stringContaining('--id needs a value.') });
  expect((await refused('lost')).stderr).toContain('There is no command "models lost" (did you mean models list?).');
  const bare = await promisify(execFile)(process.execPath, [MAIN, 'models']);
  expect(bare.stdout).toBe((await run('--help')).stdout);
  for (const name of ['recommend', 'search', 'pull', 'list', 'use', 'rm']) expect(bare.stdout).toContain(`models ${name} `);
});

test('serve takes several models, each with a keep-alive time', () => {
  const [first, second, third] = serve(demoModel(), `${demoModel()}@45`, `${demoModel()}@on_demand`);
  expect([first?.keep, second?.keep, third?.keep]).toEqual([{ kind: 'always' }, { kind: 'idle', minutes: 45 }, { kind: 'on_demand' }]);
  expect(serve('/models/a@b.gguf')).toEqual([{ path: '/models/a@b.gguf', keep: { kind: 'always' } }]);
});

test('an image model folder is pulled, listed with sizes, used and removed, and stays in place', async () => {
  const { folder, remove } = tinyImageModel({ name: 'Tiny pictures', sampleSize: 32 });
  const pulled = JSON.parse((await run('pull', folder, '--json')).stdout.trim().split('\n').at(-1) ?? '');
  expect(pulled).toMatchObject({ type: 'pulled', id: 'tiny-pictures', file: folder, use: null });
  const sizes = ['256x256', '384x256', '256x384'];
  const listed = JSON.parse((await run('list', '--json')).stdout);
  expect(listed.models).toMatchObject([{ id: 'tiny-pictures', type: 'image', quantization: '32bit', sizes, fits: true, problem: null }]);
  expect((await run('list')).stdout).toContain('image, 32bit');
  await run('use', 'tiny-pictures', '--keep', '15');
  expect(serve()).toEqual([{ path: folder, keep: { kind: 'idle', minutes: 15 }, id: 'tiny-pictures', sha256: pulled.sha256 }]);
  await run('rm', 'tiny-pictures', '--yes');
  expect(existsSync(join(folder, 'unet/model.onnx'))).toBe(true);
  remove();
});

test('shipped models can be named', () => {
  expect(serve('demo-text', 'demo-image@on_demand')).toEqual([
    { path: demoModel(), keep: { kind: 'always' } },
    { path: expect.stringMatching(/demo-models\/picto$/), keep: { kind: 'on_demand' } },
  ]);
  expect(serve('demo-vision')).toMatchObject([{ projectorPath: expect.stringMatching(/viso\/mmproj-viso\.gguf$/) }]);
});

test('the list reports fit, speed and damage', () => {
  const store = new ModelStore(join(dir, 'list'));
  const entry = {
    id: 'a',
    file: demoModel(),
    files: [demoModel()],
    sha256: 'ab'.repeat(32),
    bytes: 1,
    source: 'x',
    pulled_at: 0,
    use: null,
  };
  const wishes = { slots: null, context: null, kvCacheType: 'f16', reserve: null } as const;
  const row = rowOf(entry, store, { memoryBytes: 16e9, bandwidthGbs: 100, ...wishes });
  expect(row).toMatchObject({ fits: true, problem: null });
  // 0.7 of 100 GB/s over the 3.2 MB read per token.
  expect(row.estimated_tokens_per_second).toBeGreaterThan(15_000);
  expect(rowOf(entry, store, { memoryBytes: 0.2e9, bandwidthGbs: 0, ...wishes })).toMatchObject({
    fits: false,
    estimated_tokens_per_second: null,
  });
  expect(rowOf(entry, store, { memoryBytes: 16e9, bandwidthGbs: 0, ...wishes, reserve: 15.9e9 })).toMatchObject({ fits: false });
  const broken = join(dir, 'broken.gguf');
  writeFileSync(broken, 'no model');
  expect(rowOf({ ...entry, file: broken }, store, { memoryBytes: 16e9, bandwidthGbs: 0, ...wishes }).problem).toMatch(/GGUF/);
});
