import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { ImageStore } from '../../src/images/image-store.js';
import { newImageFileName, readImageFileName } from '../../src/images/image-token.js';

const macKey = Buffer.alloc(32, 1);
const MINUTE = 60_000;

let directory: string;
let now: number;
let errors: unknown[];
const stores: ImageStore[] = [];

beforeEach(async () => {
  directory = temporaryDirectory('images-test');
  now = 1_790_000_000_000;
  errors = [];
});
afterEach(() => {
  for (const store of stores.splice(0)) store.close();
});

async function open(options: { readonly maxBytes?: number; readonly sharePercent?: number } = {}): Promise<ImageStore> {
  const store = await ImageStore.open({
    directory,
    maxBytes: 1_000_000,
    lifetimeMs: 60 * MINUTE,
    macKey,
    now: () => now,
    onError: (error) => errors.push(error),
    ...options,
  });
  stores.push(store);
  return store;
}

async function keep(store: ImageStore, ...images: Uint8Array[]): Promise<readonly string[]> {
  const allocation = store.allocate(images.length, 'png', 1000);
  if (allocation === null) throw new Error('there is no room');
  await allocation.store(images);
  return allocation.fileNames;
}

const first = Buffer.from('the very pixels of the first image');
const second = Buffer.from('and those of the second one');

describe('the image store', () => {
  it('returns a stored image to every holder of its URL', async () => {
    const store = await open();
    const [one = '', two = ''] = await keep(store, first, second);
    expect(one).toMatch(/^[A-Za-z0-9_-]{72}\.png$/);
    expect(await store.find(one)).toMatchObject({ kind: 'found', bytes: first, fileType: 'png', expiresAt: now + 60 * MINUTE });
    expect(await store.find(two)).toMatchObject({ kind: 'found', bytes: second });
    expect(await store.find(one)).toMatchObject({ kind: 'found', bytes: first });
  });

  it('leaves nothing readable on disk', async () => {
    const store = await open();
    const files = await keep(store, first, second);
    const names = await readdir(directory);
    expect(names).toHaveLength(2);
    for (const name of names) {
      const bytes = await readFile(join(directory, name));
      for (const image of [first, second]) expect(bytes.includes(image.subarray(0, 8))).toBe(false);
      for (const file of files) {
        const token = Buffer.from(file.slice(0, 72), 'base64url');
        expect(bytes.includes(token.subarray(0, 16))).toBe(false);
        expect(name).not.toContain(token.subarray(0, 8).toString('hex'));
        expect(name).not.toContain(file.slice(0, 10));
      }
    }
  });

  it('rejects every altered file name', async () => {
    const store = await open();
    const [file = ''] = await keep(store, first);
    for (let at = 0; at < file.length; at++) {
      const altered = file.slice(0, at) + (file[at] === 'A' ? 'B' : 'A') + file.slice(at + 1);
      expect(await store.find(altered), altered).toEqual({ kind: 'unknown' });
    }
    for (const other of ['', file.slice(0, -4), `${file}x`, file.replace('.png', '.jpg'), `../${file}`, 'x'.repeat(5000)]) {
      expect(await store.find(other)).toEqual({ kind: 'unknown' });
    }
    expect(await store.find(file)).toMatchObject({ kind: 'found' });
  });

  it('distinguishes expired from unknown URLs, permanently', async () => {
    const store = await open();
    const [file = ''] = await keep(store, first);
    now += 60 * MINUTE - 1;
    expect(await store.find(file)).toMatchObject({ kind: 'found' });
    now += 1;
    expect(await store.find(file)).toEqual({ kind: 'gone' });
    await store.sweep();
    expect(await readdir(directory)).toEqual([]);
    expect(store.usage).toEqual({ images: 0, bytes: 0, heldBytes: 0 });
    expect(await store.find(file)).toEqual({ kind: 'gone' });
    now += 365 * 24 * 60 * MINUTE;
    expect(await (await open()).find(file)).toEqual({ kind: 'gone' });
    expect(await store.find(newImageFileName(Buffer.alloc(32, 2), 'png', now - 1))).toEqual({ kind: 'unknown' });
  });

  it('keeps images across a restart until they expire', async () => {
    const before = await open();
    const [file = ''] = await keep(before, first);
    await writeFile(join(directory, 'half-written.part'), 'x');
    before.close();
    const after = await open();
    expect(after.usage).toEqual({ ...before.usage, images: 1 });
    expect(await readdir(directory)).toHaveLength(1);
    expect(await after.find(file)).toMatchObject({ kind: 'found', bytes: first });
    now += 61 * MINUTE;
    const later = await open();
    expect(later.usage.images).toBe(0);
    expect(await readdir(directory)).toEqual([]);
    expect(await later.find(file)).toEqual({ kind: 'gone' });
  });

  it('allocates no more than its space, and frees unused space', async () => {
    const store = await open({ maxBytes: 3 * 1028 });
    const one = store.allocate(2, 'png', 1000);
    expect(one).not.toBeNull();
    expect(store.allocate(2, 'png', 1000)).toBeNull();
    const two = store.allocate(1, 'png', 1000);
    expect(two).not.toBeNull();
    expect(store.allocate(1, 'png', 1)).toBeNull();
    two?.close();
    two?.close();
    await one?.store([first, second]);
    expect(store.usage).toEqual({ images: 2, bytes: first.length + second.length + 2 * 28, heldBytes: 0 });
    expect(store.allocate(2, 'png', 1000)).not.toBeNull();
  });

  it('holds space only for bytes received from a provider, and frees it when the provider stops', async () => {
    const store = await open({ maxBytes: 10_000 });
    const jobs = Array.from({ length: 4 }, (_, index) => store.allocate(4, 'png', 2000, `account ${index}`));
    expect(jobs).not.toContain(null);
    expect(store.usage.heldBytes).toBe(0);
    expect(jobs[0]?.holdBytes(6000, 'machine 0')).toBe(true);
    expect(jobs[1]?.holdBytes(4000, 'machine 1')).toBe(true);
    expect(jobs[2]?.holdBytes(1, 'machine 2')).toBe(false);
    jobs[1]?.releaseBytes();
    expect(jobs[2]?.holdBytes(4000, 'machine 2')).toBe(true);
    expect(store.usage.heldBytes).toBe(10_000);
    for (const job of jobs) job?.close();
    expect(jobs[3]?.holdBytes(1, 'machine 3')).toBe(false);
    expect(store.usage).toEqual({ images: 0, bytes: 0, heldBytes: 0 });
  });

  it('limits an account to its share, but always allows a first job', async () => {
    const store = await open({ maxBytes: 10_000, sharePercent: 25 });
    const large = store.allocate(1, 'png', 5000, 'ada');
    expect(large).not.toBeNull();
    expect(store.allocate(1, 'png', 100, 'ada')).toBeNull();
    large?.close();
    const kept = store.allocate(1, 'png', 1000, 'ada');
    await kept?.store([Buffer.alloc(1000)]);
    const second = store.allocate(1, 'png', 1000, 'ada');
    expect(second).not.toBeNull();
    expect(store.allocate(1, 'png', 1000, 'ada')).toBeNull();
    expect(store.allocate(2, 'png', 1000, 'ben')).not.toBeNull();
    second?.close();
    await kept?.deleteStored();
    expect(store.allocate(2, 'png', 1000, 'ada')).not.toBeNull();
  });

  it("limits a provider's unfinished images to its share, but always allows one job", async () => {
    const store = await open({ maxBytes: 10_000, sharePercent: 25 });
    const [one, two, other] = ['ada', 'ben', 'carl'].map((account) => store.allocate(2, 'png', 2000, account));
    expect(one?.holdBytes(4000, 'machine')).toBe(true);
    expect(two?.holdBytes(1, 'machine')).toBe(false);
    expect(other?.holdBytes(2000, 'another machine')).toBe(true);
    one?.releaseBytes();
    expect(two?.holdBytes(2000, 'machine')).toBe(true);
    expect(one?.holdBytes(600, 'machine')).toBe(false);
    expect(one?.holdBytes(400, 'machine')).toBe(true);
  });

  it('deletes the images of an unsuccessful job', async () => {
    const store = await open();
    const allocation = store.allocate(2, 'webp', 1000);
    await allocation?.store([first, second]);
    await allocation?.deleteStored();
    expect(store.usage).toEqual({ images: 0, bytes: 0, heldBytes: 0 });
    expect(await readdir(directory)).toEqual([]);
    expect(await store.find(allocation?.fileNames[0] ?? '')).toEqual({ kind: 'unknown' });
  });

  it('stores all images of a job or none', async () => {
    const store = await open();
    const allocation = store.allocate(2, 'png', 1000);
    await rm(directory, { recursive: true });
    await expect(allocation?.store([first, second])).rejects.toThrow('ENOENT');
    expect(store.usage).toEqual({ images: 0, bytes: 0, heldBytes: 0 });
    await expect(store.allocate(2, 'png', 1000)?.store([first])).rejects.toThrow('another number of images');
  });

  it('returns nothing of a file that was changed on disk', async () => {
    const store = await open();
    const [file = ''] = await keep(store, first);
    const [name = ''] = await readdir(directory);
    const bytes = await readFile(join(directory, name));
    bytes[20] = (bytes[20] ?? 0) ^ 1;
    await writeFile(join(directory, name), bytes);
    expect(await store.find(file)).toEqual({ kind: 'unknown' });
    expect(errors).toHaveLength(1);
    await writeFile(join(directory, name), '');
    expect(await store.find(file)).toEqual({ kind: 'unknown' });
    await rm(join(directory, name));
    expect(await store.find(file)).toEqual({ kind: 'gone' });
  });
});

describe('an image token', () => {
  it('contains file type and expiry, and a new secret each time', () => {
    const [one, two] = [newImageFileName(macKey, 'jpeg', 5000), newImageFileName(macKey, 'jpeg', 5000)];
    expect(one).toMatch(/\.jpg$/);
    const [a, b] = [readImageFileName(macKey, one), readImageFileName(macKey, two)];
    expect(a).toMatchObject({ fileType: 'jpeg', expiresAt: 5000 });
    expect(a?.imageId).not.toBe(b?.imageId);
    expect(a?.key).not.toEqual(b?.key);
    expect(readImageFileName(Buffer.alloc(32, 9), one)).toBeNull();
  });
});
