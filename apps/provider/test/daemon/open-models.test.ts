import { appendFileSync, cpSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { openModels } from '../../src/daemon/open-models.js';
import { FileHashes } from '../../src/models/file-hash.js';
import { demoModel } from '../demo-model.js';

const dir = temporaryDirectory('open-models');

const OPTIONS = {
  slots: 1,
  context: 512,
  reserve: 0,
  totalMemory: 0,
  addOnPath: join(dir, 'add-on'),
  confinement: { kind: 'none', why: null, wrap: [] },
  onEvent: () => {},
  onReplaced: () => {},
} as const;

it('reports an error in the handler of a new hash', async () => {
  const path = join(dir, 'only.gguf');
  cpSync(demoModel(), path);
  const error = await new Promise((resolve) => {
    openModels({
      ...OPTIONS,
      choices: [{ path, keep: { kind: 'on_demand' } }],
      hashes: new FileHashes(join(dir, 'only-hashes.json')),
      onChange: () => {
        throw new Error('closed');
      },
      onHashFailure: resolve,
    });
  });
  expect(error).toEqual(new Error('closed'));
}, 10_000);

it('hashes the other models when a file cannot be read', async () => {
  const choices = ['first', 'second'].map((id) => ({ id, path: join(dir, `${id}.gguf`), keep: { kind: 'on_demand' } as const }));
  for (const { path } of choices) cpSync(demoModel(), path);
  const hashes = new FileHashes(join(dir, 'hashes.json'));
  let opened: ReturnType<typeof openModels> | null = null;
  await new Promise<void>((resolve, reject) => {
    opened = openModels({ ...OPTIONS, choices, hashes, onChange: resolve, onHashFailure: reject });
    // The headers have been read, and the hashing has not begun.
    rmSync(choices[0]?.path ?? '');
  });
  const offers = (opened as ReturnType<typeof openModels> | null)?.models.offers();
  expect(offers?.map(({ id, file_sha256: sha256 }) => [id, sha256])).toEqual([
    ['first', undefined],
    ['second', await hashes.hashFile(choices[1]?.path ?? '')],
  ]);
}, 10_000);

it('offers no hash of a replaced file, and then the new one', async () => {
  const path = join(dir, 'replaced.gguf');
  cpSync(demoModel(), path);
  const hashes = new FileHashes(join(dir, 'replaced-hashes.json'));
  const { models } = openModels({
    ...OPTIONS,
    choices: [{ path, keep: { kind: 'on_demand' } }],
    hashes,
    onChange: () => {},
    onHashFailure: (error) => {
      throw error;
    },
  });
  const offered = () => models.offers()[0]?.file_sha256;
  await expect.poll(offered).toBe(await hashes.hashFile(path));
  appendFileSync(path, 'more');
  expect(offered()).toBeUndefined();
  await expect.poll(offered).toBe(await hashes.hashFile(path));
}, 10_000);

describe('an engine that crashed after its file was replaced', () => {
  async function openReplaced(name: string, isRecorded: boolean) {
    const path = join(dir, `${name}.gguf`);
    cpSync(demoModel(), path);
    const hashes = new FileHashes(join(dir, `${name}-hashes.json`));
    const sha256 = await hashes.hashFile(path);
    const reasons: string[] = [];
    const opened = openModels({
      ...OPTIONS,
      choices: [{ path, keep: { kind: 'always' }, ...(isRecorded ? { sha256 } : {}) }],
      hashes,
      onEvent: (event) => {
        if (event.type === 'disabled') reasons.push(event.reason);
      },
      onChange: () => {},
      onHashFailure: (error) => {
        throw error;
      },
    });
    onTestFinished(opened.close);
    await opened.models.start(new AbortController().signal);
    const offer = () => opened.models.offers()[0];
    const pid = () => opened.models.model(offer()?.id ?? '')?.pid;
    await expect.poll(() => offer()?.file_sha256).toBe(sha256);
    const first = pid();
    renameSync(path, `${path}.first`);
    cpSync(demoModel(), path);
    appendFileSync(path, 'more');
    process.kill(first as number, 'SIGKILL');
    const isRestarted = () => offer()?.state === 'ready' && pid() !== first;
    return { path, sha256, hashes, reasons, offer, isRestarted };
  }

  it('is offered without a hash once the first file is back', async () => {
    const { path, sha256, hashes, reasons, offer, isRestarted } = await openReplaced('moved-back', false);
    await expect.poll(() => [isRestarted(), ...reasons]).toEqual([true]);
    await expect.poll(() => offer()?.file_sha256).toBe(await hashes.hashFile(path));
    renameSync(`${path}.first`, path);
    expect(await hashes.hashFile(path)).toBe(sha256);
    // The first report after the change starts the hashing, whose result is that of the cache.
    for (let report = 0; report < 20; report++) {
      expect(offer()?.file_sha256).toBeUndefined();
      await setImmediate();
    }
  });

  it('is not restarted if the model was pulled with another hash', async () => {
    const { reasons } = await openReplaced('pulled', true);
    await expect.poll(() => reasons).toEqual([expect.stringContaining('has changed since the download')]);
  });
});
