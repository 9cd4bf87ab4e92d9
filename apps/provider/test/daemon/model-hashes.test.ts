import { appendFileSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { sha256Hex } from '@inference/protocol/crypto';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { timerCountOf } from '../../../../test/support/own-timers.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { ModelHashes } from '../../src/daemon/model-hashes.js';
import { systemFingerprint } from '../../src/jobs/model-lease.js';
import type { ServedModel } from '../../src/jobs/serving/served-model.js';
import { FileHashes } from '../../src/models/file-hash.js';
import { ModelFileError } from '../../src/models/gguf-header.js';

const never = new AbortController().signal;
const hashOfText = (text: string): string => sha256Hex(Buffer.from(text));

afterEach(() => void vi.useRealTimers());

function open(hashes?: FileHashes) {
  const dir = temporaryDirectory('model-hashes');
  const path = join(dir, 'model.gguf');
  writeFileSync(path, 'one');
  const model = { id: 'model', path, files: [path] };
  const changes: (string | null)[] = [];
  let replacedCount = 0;
  const models = new ModelHashes({
    hashes: hashes ?? new FileHashes(join(dir, 'hashes.json')),
    onChange: () => void changes.push(models.hashOf(model, false)),
    onFailure: (error) => {
      throw error;
    },
    onReplaced: () => void replacedCount++,
  });
  return { path, model, models, changes, replacedCount: () => replacedCount };
}

it('withdraws the hash of a replaced file before the next report, and reports the new one', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const { path, model, models, changes } = open();
  models.setModels([model]);
  await expect.poll(() => models.hashOf(model, false)).toBe(hashOfText('one'));
  writeFileSync(`${path}.new`, 'two');
  renameSync(`${path}.new`, path);
  expect(models.hashOf(model, false)).toBeNull();
  await expect.poll(() => models.hashOf(model, false)).toBe(hashOfText('two'));
  expect(changes).toEqual([hashOfText('one'), null, hashOfText('two')]);
  rmSync(path);
  expect(models.hashOf(model, false)).toBeNull();
  await expect.poll(() => changes).toHaveLength(4);
  writeFileSync(path, 'three');
  expect(models.hashOf(model, false)).toBeNull();
  // The file may have appeared while its hashing failed, which delays the next one.
  await expect
    .poll(async () => {
      await vi.advanceTimersByTimeAsync(10_000);
      return models.hashOf(model, false);
    })
    .toBe(hashOfText('three'));
});

it('reports no hash for a loaded model whose file changed since its start', async () => {
  const { path, model, models } = open();
  models.setModels([model]);
  await models.beforeStart(model, undefined, never);
  await expect.poll(() => models.hashOf(model, true)).toBe(hashOfText('one'));
  appendFileSync(path, ' more');
  await expect.poll(() => models.hashOf(model, false)).toBe(hashOfText('one more'));
  expect(models.hashOf(model, true)).toBeNull();
  await models.beforeStart(model, undefined, never);
  expect(models.hashOf(model, true)).toBe(hashOfText('one more'));
  await expect(models.beforeStart(model, hashOfText('one'), never)).rejects.toThrow('has changed since the download');
});

it.each([
  { when: 'before its engine was started', isHashed: true, expected: undefined },
  { when: 'after its engine was started', isHashed: false, expected: undefined },
  { when: 'at the start of its engine', isHashed: false, expected: hashOfText('one') },
])('reports the hash of a loaded model again after equal content replaced a file that was hashed $when', async (example) => {
  const { path, model, models, changes } = open();
  if (example.isHashed) {
    models.setModels([model]);
    await expect.poll(() => models.hashOf(model, false)).toBe(hashOfText('one'));
  }
  await models.beforeStart(model, example.expected, never);
  models.setModels([model]);
  await expect.poll(() => models.hashOf(model, true)).toBe(hashOfText('one'));
  utimesSync(path, 1, 1);
  expect(models.hashOf(model, true)).toBeNull();
  await expect.poll(() => models.hashOf(model, true)).toBe(hashOfText('one'));
  writeFileSync(path, 'two');
  await expect.poll(() => models.hashOf(model, false)).toBe(hashOfText('two'));
  expect(models.hashOf(model, true)).toBeNull();
  writeFileSync(`${path}.restored`, 'one');
  renameSync(`${path}.restored`, path);
  await expect.poll(() => models.hashOf(model, true)).toBe(hashOfText('one'));
  expect(changes.at(-1)).toBe(hashOfText('one'));
});

it('reports no hash of a loaded model whose file changed before it was hashed', async () => {
  const { path, model, models } = open();
  await models.beforeStart(model, undefined, never);
  appendFileSync(path, ' more');
  models.setModels([model]);
  await expect.poll(() => models.hashOf(model, false)).toBe(hashOfText('one more'));
  expect(models.hashOf(model, true)).toBeNull();
});

it('reports files with another content than before, but no new stamps of equal content', async () => {
  const { path, model, models, replacedCount } = open();
  models.setModels([model]);
  await expect.poll(() => models.hashOf(model, false)).toBe(hashOfText('one'));
  utimesSync(path, 1, 1);
  expect(models.hashOf(model, false)).toBeNull();
  await expect.poll(() => models.hashOf(model, false)).toBe(hashOfText('one'));
  expect(replacedCount()).toBe(0);
  appendFileSync(path, ' more');
  await expect.poll(() => models.hashOf(model, false)).toBe(hashOfText('one more'));
  expect(replacedCount()).toBe(1);
});

it('reports files with another content than the pulled model, once', async () => {
  const { model, models, replacedCount } = open();
  models.setModels([{ ...model, expected: hashOfText('two') }]);
  await expect.poll(() => models.hashOf(model, false)).toBe(hashOfText('one'));
  expect(replacedCount()).toBe(1);
});

it('hashes a file again minutes after a read error', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const timerCount = timerCountOf('/daemon/model-hashes');
  class Faulty extends FileHashes {
    isFaulty = true;

    override hashModel(paths: readonly string[]): Promise<string> {
      return this.isFaulty ? Promise.reject(Object.assign(new Error('i/o error'), { code: 'EIO' })) : super.hashModel(paths);
    }
  }
  const hashes = new Faulty(join(temporaryDirectory('model-hashes'), 'hashes.json'));
  const { model, models } = open(hashes);
  models.setModels([model]);
  await expect.poll(() => timerCount()).toBe(1);
  hashes.isFaulty = false;
  expect(models.hashOf(model, false)).toBeNull();
  await vi.advanceTimersByTimeAsync(5 * 60_000);
  await expect.poll(() => models.hashOf(model, false)).toBe(hashOfText('one'));
  expect(timerCount()).toBe(0);
});

describe('a file that changed while it was hashed', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));

  /** Opens a model whose file changes during each of the first hashings. */
  function openChanging(isNoticed: boolean, times = 1) {
    const timerCount = timerCountOf('/daemon/model-hashes');
    let path = '';
    class Interrupted extends FileHashes {
      count = 0;

      override async hashModel(paths: readonly string[]): Promise<string> {
        const hash = await super.hashModel(paths);
        if (this.count++ < times) {
          appendFileSync(path, ' more');
          if (isNoticed) throw new ModelFileError('changed');
        }
        return hash;
      }
    }
    const hashes = new Interrupted(join(temporaryDirectory('model-hashes'), 'hashes.json'));
    const opened = open(hashes);
    path = opened.path;
    opened.models.setModels([opened.model]);
    return { ...opened, hashes, timerCount };
  }

  it.each([true, false])('is hashed again after a delay, without an offer (noticed by the hashing: %s)', async (isNoticed) => {
    const { changes, timerCount } = openChanging(isNoticed, 2);
    for (let time = 0; time < 2; time++) {
      await expect.poll(() => timerCount()).toBe(1);
      expect(changes).toEqual([]);
      await vi.advanceTimersByTimeAsync(10_000);
    }
    await expect.poll(() => changes).toEqual([hashOfText('one more more')]);
    expect(timerCount()).toBe(0);
  });

  it('is not hashed again after the end', async () => {
    const { models, hashes, timerCount } = openChanging(true);
    await expect.poll(() => timerCount()).toBe(1);
    models.close();
    expect(timerCount()).toBe(0);
    expect(hashes.count).toBe(1);
  });

  it('is not hashed again if the end comes first', async () => {
    const { models, hashes, timerCount } = openChanging(true);
    models.close();
    await expect.poll(() => hashes.count).toBe(1);
    await setImmediate();
    expect(timerCount()).toBe(0);
  });
});

it('fingerprints stay while a hash becomes known, and change with another hash', () => {
  let sha256: string | null = null;
  const facts = { id: 'model', quantization: '8bit', fileBytes: 3 };
  const model = { serving: { facts, fileSha256: () => sha256 } } as unknown as ServedModel;
  const first = systemFingerprint(model, 'build');
  sha256 = 'a'.repeat(64);
  expect(systemFingerprint(model, 'build')).toBe(first);
  sha256 = null;
  expect(systemFingerprint(model, 'build')).toBe(first);
  sha256 = 'b'.repeat(64);
  const second = systemFingerprint(model, 'build');
  expect(second).not.toBe(first);
  expect(systemFingerprint(model, 'build')).toBe(second);
});
