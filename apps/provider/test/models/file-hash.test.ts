/** `FileHashes` when a known file can no longer be read, and when two processes share the cache. */

import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { sha256Hex } from '@inference/protocol/crypto';
import { expect, it } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { FileHashes } from '../../src/models/file-hash.js';

function open(isDeleted?: (path: string) => Promise<boolean>, maxCheckMs?: number) {
  const dir = temporaryDirectory('file-hash');
  const cache = join(dir, 'hashes.json');
  const write = (name: string): string => {
    const path = join(dir, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, name);
    return path;
  };
  const cached = (): string[] => Object.keys((JSON.parse(readFileSync(cache, 'utf8')) as { files: object }).files);
  return { hashes: new FileHashes(cache, isDeleted, maxCheckMs), cache, write, cached };
}

it('hashes a file while another known one cannot be read, and does not forget that one', async () => {
  const { hashes, write, cached } = open();
  const [unreadable, other] = [write('unreadable'), write('other')];
  await hashes.hashFile(unreadable);
  rmSync(unreadable);
  // Fails with ELOOP, for every user.
  symlinkSync(unreadable, unreadable);
  expect(await hashes.hashFile(other)).toBe(sha256Hex(Buffer.from('other')));
  expect(cached()).toEqual([unreadable, other]);
});

it('forgets a file whose folder has become a file', async () => {
  const { hashes, write, cached } = open();
  const [deleted, other] = [write('folder/deleted'), write('other')];
  await hashes.hashFile(deleted);
  rmSync(dirname(deleted), { recursive: true });
  write('folder');
  await hashes.hashFile(other);
  expect(cached()).toEqual([other]);
});

it('hashes files while the file system of another known one does not respond', async () => {
  let hangingCount = 0;
  let isHanging = false;
  const { hashes, write, cached } = open((path) => {
    if (path !== remote || !isHanging) return Promise.resolve(false);
    hangingCount++;
    return new Promise(() => {});
  }, 1);
  const [remote, ...others] = [write('remote'), write('first'), write('second')];
  await hashes.hashFile(remote);
  isHanging = true;
  for (const path of others) expect(await hashes.hashFile(path)).toMatch(/^[0-9a-f]{64}$/);
  expect(cached()).toEqual([remote, ...others]);
  expect(hangingCount).toBe(1);
});

it('shares the entries of another process, and forgets none of them', async () => {
  const { hashes: daemon, cache, write, cached } = open();
  const command = new FileHashes(cache);
  const paths = ['first', 'second', 'third'].map(write);
  const [first = '', second = '', third = ''] = paths;
  await daemon.hashFile(first);
  await command.hashFile(second);
  expect(await daemon.cachedHash(second)).toBe(sha256Hex(Buffer.from('second')));
  await daemon.hashFile(third);
  expect(cached()).toEqual(paths);
  rmSync(second);
  await daemon.hashFile(write('fourth'));
  await command.hashFile(write('fifth'));
  await daemon.hashFile(write('sixth'));
  expect(cached().map((path) => basename(path))).toEqual(['first', 'third', 'fourth', 'fifth', 'sixth']);
});
