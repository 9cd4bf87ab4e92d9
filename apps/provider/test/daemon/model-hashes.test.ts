import { appendFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sha256Hex } from '@inference/protocol/crypto';
import { expect, it } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { ModelHashes } from '../../src/daemon/model-hashes.js';
import { systemFingerprint } from '../../src/jobs/model-lease.js';
import type { ServedModel } from '../../src/jobs/serving/served-model.js';
import { FileHashes } from '../../src/models/file-hash.js';

const never = new AbortController().signal;
const hashOfText = (text: string): string => sha256Hex(Buffer.from(text));

function open(hashes?: FileHashes) {
  const dir = temporaryDirectory('model-hashes');
  const path = join(dir, 'model.gguf');
  writeFileSync(path, 'one');
  const model = { id: 'model', path, files: [path] };
  const changes: (string | null)[] = [];
  const models = new ModelHashes({
    hashes: hashes ?? new FileHashes(join(dir, 'hashes.json')),
    onChange: () => void changes.push(models.hashOf(model, false)),
    onFailure: (error) => {
      throw error;
    },
  });
  return { path, model, models, changes };
}

it('withdraws the hash of a replaced file before the next report, and reports the new one', async () => {
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
  await expect.poll(() => models.hashOf(model, false)).toBe(hashOfText('three'));
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

it('hashes again a file that changed while it was hashed', async () => {
  let path = '';
  class Interrupted extends FileHashes {
    #count = 0;

    override async hashModel(paths: readonly string[]): Promise<string> {
      const hash = await super.hashModel(paths);
      if (this.#count++ === 0) appendFileSync(path, ' more');
      return hash;
    }
  }
  const opened = open(new Interrupted(join(temporaryDirectory('model-hashes'), 'hashes.json')));
  path = opened.path;
  opened.models.setModels([opened.model]);
  await expect.poll(() => opened.models.hashOf(opened.model, false)).toBe(hashOfText('one more'));
  expect(opened.changes).not.toContain(hashOfText('one'));
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
