/** Pulls from a faulty server: no wrong file is accepted, and no byte is read twice in vain. */
import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { widthOf } from '../../src/cli/output/columns.js';
import { ProgressLine } from '../../src/cli/output/progress-line.js';
import { byteSizeText } from '../../src/models/byte-size-text.js';
import { FileHashes, modelHash, readStamp } from '../../src/models/file-hash.js';
import { ModelFileError, readGgufHeader } from '../../src/models/gguf-header.js';
import { readModelFacts } from '../../src/models/model-facts.js';
import { download } from '../../src/models/store/download.js';
import { modelRepositoryOf, readSource } from '../../src/models/store/model-repository.js';
import { ModelStore, ModelStoreError } from '../../src/models/store/model-store.js';
import { type PullOptions, pull } from '../../src/models/store/pull.js';
import { type Download, DownloadError, type Tuning } from '../../src/models/store/transfer.js';
import { demoModel } from '../demo-model.js';
import { FileServer } from '../file-server.js';
import { tinyImageModel } from '../image-model.js';
import { type ProjectorHeader, writeProjectorHeader } from '../vision-model.js';

const model = readFileSync(demoModel());
const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
const modelSha256 = sha256(model);
const tuning: Tuning = { chunkBytes: 300_000, connections: 3, tries: 3, retryMs: 1, stallMs: 5000 };
const never = new AbortController().signal;

let server: FileServer;
let dir: string;
beforeAll(async () => {
  server = await FileServer.listen();
});
afterAll(() => server.close());
beforeEach(() => {
  dir = temporaryDirectory('store');
  server.files.clear();
  server.ranges.length = 0;
  server.supportsRanges = true;
  server.fault = () => false;
  server.wrongHash = null;
  server.put('/m.gguf', model);
});

function get(changes: Partial<Download> = {}): Promise<{ bytes: number; sha256: string; stamp: object }> {
  return download({ url: `${server.url}/m.gguf`, file: join(dir, 'm.gguf'), bytes: null, sha256: null, signal: never, tuning, ...changes });
}

describe('a download', () => {
  test('comes in parallel ranges, each byte once', async () => {
    const seen: number[] = [];
    const got = await get({ onProgress: ({ phase, bytes }) => phase === 'downloading' && seen.push(bytes) });
    expect(got).toEqual({ bytes: model.length, sha256: modelSha256, stamp: await readStamp(join(dir, 'm.gguf')) });
    expect(readFileSync(join(dir, 'm.gguf')).equals(model)).toBe(true);
    expect(new Set(server.ranges).size).toBe(Math.ceil(model.length / tuning.chunkBytes));
    expect(server.ranges).toHaveLength(new Set(server.ranges).size);
    expect(seen.at(-1)).toBe(model.length);
    expect(readdirSync(dir)).toEqual(['m.gguf']);
  });

  test('resumes a broken connection at its position', async () => {
    server.fault = (request, response, file, count) => {
      if (request.headers.range === 'bytes=0-0' || count % 2 === 0) return false;
      server.send(request, response, file, 100_000);
      return true;
    };
    const before = server.sent;
    expect((await get({ sha256: modelSha256 })).sha256).toBe(modelSha256);
    // Bytes written before a cut are not sent again; bytes in flight may be.
    expect(server.sent - before).toBeLessThan(1.8 * model.length);
  });

  test('resumes after a stop and reads only missing bytes', async () => {
    const stopping = new AbortController();
    const first = get({
      signal: stopping.signal,
      onProgress: ({ bytes }) => bytes > model.length / 2 && stopping.abort(new Error('stopped')),
    });
    await expect(first).rejects.toThrow('stopped');
    const { done } = JSON.parse(readFileSync(join(dir, 'm.gguf.part.json'), 'utf8')) as { done: number[] };
    expect(done.length).toBeGreaterThan(0);
    server.ranges.length = 0;
    expect((await get()).sha256).toBe(modelSha256);
    expect(server.ranges).toHaveLength(Math.ceil(model.length / tuning.chunkBytes) - done.length);
  });

  test('resumes within a chunk, so that a file smaller than one chunk does not restart', async () => {
    const oneChunk = { ...tuning, chunkBytes: 10 * model.length };
    const stopping = new AbortController();
    let reached = 0;
    const first = get({
      tuning: oneChunk,
      signal: stopping.signal,
      onProgress: ({ bytes }) => {
        reached = bytes;
        if (bytes > model.length / 3) stopping.abort(new Error('stopped'));
      },
    });
    await expect(first).rejects.toThrow('stopped');
    const seen: number[] = [];
    const before = server.sent;
    expect((await get({ tuning: oneChunk, onProgress: ({ bytes }) => seen.push(bytes) })).sha256).toBe(modelSha256);
    expect(seen[0]).toBe(reached);
    expect(server.sent - before).toBeLessThan(model.length);
  });

  test('from a server that never ends ends before the disk is full', async () => {
    server.supportsRanges = false;
    server.fault = (request, answer) => {
      answer.writeHead(200);
      const send = (): void => {
        if (!answer.destroyed) answer.write(Buffer.alloc(100_000), send);
      };
      if (request.headers.range === undefined) send();
      else answer.end();
      return true;
    };
    const spare = 256 << 20;
    const freeBytes = async () => {
      const written = statSync(join(dir, 'm.gguf.part'), { throwIfNoEntry: false })?.size ?? 0;
      return spare + 1_000_000 - written;
    };
    await expect(get({ freeBytes })).rejects.toThrow(/^not enough disk space: the server reports no length, and .* are free$/);
    expect(readdirSync(dir)).toEqual([]);
  }, 10_000);

  test('of more bytes than the server reported before is refused', async () => {
    server.supportsRanges = false;
    server.fault = (request, response) => {
      if (request.headers.range === undefined) response.writeHead(200).end(model);
      else response.writeHead(200, { 'content-length': 1000 }).end(model.subarray(0, 1000));
      return true;
    };
    await expect(get()).rejects.toThrow('the server sends more than the file should have');
    expect(readdirSync(dir)).toEqual([]);
  });

  test('restarts when the file on the server has changed', async () => {
    const stopping = new AbortController();
    const first = get({ signal: stopping.signal, onProgress: ({ bytes }) => bytes > 600_000 && stopping.abort(new Error('stopped')) });
    await expect(first).rejects.toThrow('stopped');
    const other = Buffer.from(model);
    other.fill(7, 1_000_000, 1_100_000);
    server.put('/m.gguf', other);
    expect((await get()).sha256).toBe(sha256(other));

    // The same while downloading.
    rmSync(join(dir, 'm.gguf'));
    server.fault = (_request, _response, _file, count) => {
      if (count % 5 === 0 && server.files.get('/m.gguf')?.body === other) server.put('/m.gguf', model);
      return false;
    };
    expect((await get()).sha256).toBe(modelSha256);
  });

  test('of a server without ranges comes in one piece', async () => {
    server.supportsRanges = false;
    let cuts = 1;
    server.fault = (request, response, file) => {
      if (request.headers.range !== undefined || cuts-- <= 0) return false;
      server.send(request, response, file, 500_000);
      return true;
    };
    expect((await get({ sha256: modelSha256 })).bytes).toBe(model.length);
  });

  test.each<[string, (server: FileServer) => void, RegExp]>([
    ['bytes that were corrupted on the way', (s) => (s.fault = corrupt), /SHA-256 is [0-9a-f]{64}, and it should be/],
    [
      'a length that is not the right one',
      (s) => s.put('/m.gguf', model.subarray(0, 1_000_000)),
      /offers 1000000 bytes, and the file should have/,
    ],
    ['parts of another place', (s) => (s.fault = elsewhere), /another part of the file/],
    ['more than was asked for', (s) => (s.fault = tooMuch), /another part|more than requested/],
    ['connections that always break', (s) => (s.fault = alwaysBreaks), /cannot be reached \(/],
    ['status 500', (s) => (s.fault = status(500)), /status 500/],
    ['status 404', (s) => (s.fault = status(404)), /no such file/],
    ['status 403', (s) => (s.fault = status(403)), /HF_TOKEN/],
  ])('is rejected for %s, and leaves no apparent model', async (_what, prepare, sentence) => {
    prepare(server);
    const failure = await get({ bytes: model.length, sha256: modelSha256 }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(DownloadError);
    expect((failure as Error).message).toMatch(sentence);
    expect(existsSync(join(dir, 'm.gguf'))).toBe(false);
  });

  test('too large for the disk is rejected before it starts', async () => {
    server.fault = (request, response) => {
      if (request.headers.range !== 'bytes=0-0') return false;
      response.writeHead(206, { 'content-range': `bytes 0-0/${10 ** 15}`, etag: '"huge"' }).end('x');
      return true;
    };
    await expect(get()).rejects.toThrow(/not enough disk space: .* to download, .* free/);
    expect(server.ranges).toEqual([]);
    expect(readdirSync(dir)).toEqual([]);
  });
});

type Fault = FileServer['fault'];
const isProbe: (request: Parameters<Fault>[0]) => boolean = (request) => request.headers.range === 'bytes=0-0';
const corrupt: Fault = (request, response, file) => {
  if (isProbe(request)) return false;
  const body = Buffer.from(file.body);
  body[2_000_000] = (body[2_000_000] as number) ^ 1;
  server.send(request, response, { ...file, body });
  return true;
};
const elsewhere: Fault = (request, response, file) => {
  if (isProbe(request)) return false;
  response.writeHead(206, { 'content-range': `bytes 5-9/${file.body.length}`, etag: file.etag ?? '' }).end('right');
  return true;
};
const tooMuch: Fault = (request, response, file) => {
  if (isProbe(request)) return false;
  const [, start, end] = /(\d+)-(\d+)/.exec(request.headers.range ?? '') ?? [];
  response.writeHead(206, { 'content-range': `bytes ${start}-${end}/${file.body.length}`, etag: file.etag ?? '' });
  response.end(Buffer.alloc(Number(end) - Number(start) + 100));
  return true;
};
const alwaysBreaks: Fault = (request, response) => {
  if (isProbe(request)) return false;
  response.destroy();
  return true;
};
const status =
  (code: number): Fault =>
  (_request, response) => {
    response.writeHead(code).end();
    return true;
  };

describe('a pull', () => {
  let installed = 0;
  const options = (source: string, changes: Partial<PullOptions> = {}): PullOptions => ({
    source,
    store: new ModelStore(join(dir, 'models')),
    hashes: new FileHashes(join(dir, 'hashes.json')),
    modelRepository: modelRepositoryOf({ HF_ENDPOINT: server.url, HF_TOKEN: 'hf_secret' }),
    id: null,
    projector: { kind: 'usual' },
    sha256: null,
    catalogueHashesOf: async () => null,
    installEngine: async () => void installed++,
    onFile: () => {},
    onProgress: () => {},
    signal: never,
    now: () => 1_800_000_000_000,
    tuning,
    ...changes,
  });
  const repository = (path: string, body: Buffer) => server.put(`/owner/repo/resolve/main/${path}`, body);

  test('of an image model creates only its folder, which rm removes', async () => {
    const tiny = tinyImageModel();
    for (const name of readdirSync(tiny.folder, { recursive: true, encoding: 'utf8' })) {
      const path = join(tiny.folder, name);
      if (statSync(path).isFile()) repository(name, readFileSync(path));
    }
    repository('safety_checker/model.onnx', Buffer.from('not needed'));
    repository('unet/../../outside.json', Buffer.from('{}'));
    const pulled = await pull(options('hf:owner/repo'));
    tiny.remove();
    expect(pulled).toMatchObject({ entry: { id: 'tiny-diffusion', file: 'owner--repo' }, verifiedBy: 'repository' });
    const folder = join(dir, 'models', 'owner--repo');
    expect(readdirSync(folder).toSorted()).toEqual(['model_index.json', 'scheduler', 'text_encoder', 'tokenizer', 'unet', 'vae_decoder']);
    expect(existsSync(join(dir, 'outside.json'))).toBe(false);
    const store = new ModelStore(join(dir, 'models'));
    expect(readModelFacts(store.path(pulled.entry))).toMatchObject({ path: folder, image: { engine: 'onnx' } });
    expect(store.remove('tiny-diffusion')).toBe(true);
    expect(existsSync(folder)).toBe(false);
  });

  test('of a known quantized image model adds its companion parts and installs the engine', async () => {
    for (const [path, body] of [
      ['/leejet/Z-Image-Turbo-GGUF/resolve/main/z_image_turbo-Q4_K.gguf', 'model'],
      ['/leejet/Z-Image-Turbo-GGUF/resolve/main/z_image_turbo-Q8_0.gguf', 'larger'],
      ['/unsloth/Qwen3-4B-Instruct-2507-GGUF/resolve/main/Qwen3-4B-Instruct-2507-Q4_K_M.gguf', 'text encoder'],
      ['/Comfy-Org/z_image_turbo/resolve/main/split_files/vae/ae.safetensors', 'decoder'],
    ] as const) {
      server.put(path, Buffer.from(body));
    }
    const before = installed;
    const pulled = await pull(options('hf:leejet/Z-Image-Turbo-GGUF:Q4_K'));
    expect(installed).toBe(before + 1);
    expect(pulled).toMatchObject({ entry: { id: 'z-image-turbo', bytes: expect.any(Number) }, verifiedBy: 'repository' });
    const store = new ModelStore(join(dir, 'models'));
    const folder = store.path(pulled.entry);
    expect(readdirSync(folder).toSorted()).toEqual([
      'Qwen3-4B-Instruct-2507-Q4_K_M.gguf',
      'ae.safetensors',
      'image-model.json',
      'z_image_turbo-Q4_K.gguf',
    ]);
    expect(readModelFacts(folder)).toMatchObject({
      displayName: 'Z-Image Turbo',
      quantization: 'Q4_K',
      image: { engine: 'stable-diffusion.cpp', steps: 8 },
    });
    await expect(pull(options('hf:leejet/Z-Image-Turbo-GGUF:Q2_K'))).rejects.toThrow(/choose a quantization/);
    store.remove('z-image-turbo');
    expect(existsSync(folder)).toBe(false);
    server.files.delete('/Comfy-Org/z_image_turbo/resolve/main/split_files/vae/ae.safetensors');
    server.put('/Comfy-Org/z_image_turbo/resolve/main/other', Buffer.from('x'));
    await expect(pull(options('hf:leejet/Z-Image-Turbo-GGUF:Q4_K'))).rejects.toThrow(
      /no longer has the file split_files\/vae\/ae\.safetensors/,
    );
  });

  test('from a repository takes the named quantization, checked by hash, and is fast when present', async () => {
    repository('Model-Q4_K_M.gguf', model);
    repository('Model-IQ4_XS.gguf', Buffer.from('other'));
    const pulled = await pull(options('hf:owner/repo:q4_k_m'));
    expect(pulled).toMatchObject({ entry: { sha256: modelSha256, file: 'Model-Q4_K_M.gguf', use: null }, verifiedBy: 'repository' });
    expect(server.authorizations.at(-1)).toBe('Bearer hf_secret');
    expect(new ModelStore(join(dir, 'models')).find(pulled.entry.id)?.source).toBe('hf:owner/repo:q4_k_m');
    server.ranges.length = 0;
    await pull(options('hf:owner/repo:q4_k_m'));
    expect(server.ranges).toEqual([]);
  });

  test('keeps the file of another source that has the same name, and deletes a replaced file', async () => {
    const other = Buffer.from(model);
    other[2_000_000] = (other[2_000_000] as number) ^ 1;
    repository('Model-Q4_K_M.gguf', model);
    server.put('/other/repo/resolve/main/Model-Q4_K_M.gguf', other);
    server.put('/mirror/repo/resolve/main/Model-Q4_K_M.gguf', model);
    const first = await pull(options('hf:owner/repo', { id: 'first' }));
    const second = await pull(options('hf:other/repo', { id: 'second' }));
    const same = await pull(options('hf:mirror/repo', { id: 'same' }));
    // File systems of Macs ignore case.
    server.put('/lower/repo/resolve/main/model-q4_k_m.gguf', other);
    expect((await pull(options('hf:lower/repo', { id: 'lower' }))).entry.file).toBe('lower--repo--model-q4_k_m.gguf');
    new ModelStore(join(dir, 'models')).remove('lower');
    expect([first, second, same].map(({ entry }) => entry.file)).toEqual([
      'Model-Q4_K_M.gguf',
      'other--repo--Model-Q4_K_M.gguf',
      'Model-Q4_K_M.gguf',
    ]);
    const stored = (name: string) => sha256(readFileSync(join(dir, 'models', name)));
    expect([stored(first.entry.file), stored(second.entry.file)]).toEqual([first.entry.sha256, second.entry.sha256]);

    const address = await pull(options(`${server.url}/other/repo/resolve/main/Model-Q4_K_M.gguf`, { id: 'second' }));
    expect(stored(address.entry.file)).toBe(sha256(other));
    expect(readdirSync(join(dir, 'models')).toSorted()).toEqual([address.entry.file, 'Model-Q4_K_M.gguf', 'library.json'].toSorted());
  });

  describe('of a vision model', () => {
    const projectorFile = (changes: Partial<ProjectorHeader> = {}): Buffer => {
      const { values } = readGgufHeader(demoModel());
      const outputLength = Number(values.get(`${values.get('general.architecture')}.embedding_length`));
      return readFileSync(writeProjectorHeader(temporaryDirectory('projector'), 'mmproj.gguf', { outputLength, ...changes }));
    };
    const projector = projectorFile();
    const together = modelHash([modelSha256, sha256(projector)]);
    const files = () =>
      readdirSync(join(dir, 'models'))
        .filter((name) => name.endsWith('.gguf'))
        .toSorted();
    beforeEach(() => {
      repository('Model-Q4_K_M.gguf', model);
      repository('mmproj-BF16.gguf', Buffer.from('larger'));
      repository('mmproj-F16.gguf', projector);
    });

    test('takes the projector along, resumes, counts both, and removes both', async () => {
      const stopping = new AbortController();
      const names: string[] = [];
      const onFile: PullOptions['onFile'] = ({ name, count }) => {
        names.push(`${name} of ${count}`);
        if (names.length === 2) stopping.abort(new Error('stopped'));
      };
      await expect(pull(options('hf:owner/repo', { onFile, signal: stopping.signal }))).rejects.toThrow('stopped');
      expect(names).toEqual(['Model-Q4_K_M.gguf of 2', 'owner--repo--mmproj-F16.gguf of 2']);
      server.ranges.length = 0;
      const { entry, facts, verifiedBy, leftOut } = await pull(options('hf:owner/repo'));
      expect(server.ranges).toHaveLength(1);
      expect(entry).toMatchObject({ sha256: together, bytes: model.length + projector.length, projector: 'owner--repo--mmproj-F16.gguf' });
      expect([facts.vision?.maxImageTokens, verifiedBy, leftOut]).toEqual([280, 'repository', null]);
      const store = new ModelStore(join(dir, 'models'));
      store.put({ ...entry, id: 'same-projector', file: 'Other.gguf', files: ['Other.gguf', entry.projector as string] });
      store.remove(entry.id);
      expect(files()).toEqual(['owner--repo--mmproj-F16.gguf']);
      store.remove('same-projector');
      expect(files()).toEqual([]);
    });

    test('leaves the projector out on request, for audio, and where the expected hash is of the model alone', async () => {
      expect((await pull(options('hf:owner/repo'))).entry.projector).toBeDefined();
      const textOnly = await pull(options('hf:owner/repo', { projector: { kind: 'none' } }));
      expect([textOnly.entry.sha256, textOnly.entry.projector, textOnly.leftOut]).toEqual([modelSha256, undefined, null]);
      expect(files()).toEqual(['Model-Q4_K_M.gguf']);

      server.ranges.length = 0;
      expect(await pull(options('hf:owner/repo', { sha256: modelSha256 }))).toMatchObject({ verifiedBy: 'owner', leftOut: 'hash' });
      expect(server.ranges).toEqual([]);
      expect((await pull(options('hf:owner/repo', { sha256: together }))).leftOut).toBeNull();
      await expect(pull(options('hf:owner/repo', { sha256: 'ab'.repeat(32) }))).rejects.toThrow(/, or .* without the projector/);
      expect(await pull(options('hf:owner/repo', { catalogueHashesOf: async () => [modelSha256] }))).toMatchObject({ leftOut: 'hash' });

      repository('mmproj-F16.gguf', projectorFile({ encoder: 'audio' }));
      expect((await pull(options('hf:owner/repo'))).leftOut).toBe('audio');
      expect(files()).toEqual(['Model-Q4_K_M.gguf']);
    });

    test('takes the projector that the owner names, and refuses one of another model', async () => {
      const named = (name: string): Partial<PullOptions> => ({ projector: { kind: 'named', name } });
      await expect(pull(options('hf:owner/repo', named('Q8_0')))).rejects.toThrow(/no single projector Q8_0/);
      repository('mmproj-Q8_0.gguf', projectorFile({ outputLength: 64 }));
      await expect(pull(options('hf:owner/repo', named('Q8_0')))).rejects.toThrow(/belongs to another model/);
      expect(new ModelStore(join(dir, 'models')).entries()).toEqual([]);

      const local = join(dir, 'local.gguf');
      writeFileSync(local, projector);
      const inPlace = await pull(options(demoModel(), named(local)));
      expect(inPlace.entry).toMatchObject({ files: [demoModel(), local], projector: local, sha256: together });
      server.put('/p.gguf', projector);
      const remote = await pull(options(`${server.url}/m.gguf`, named(`${server.url}/p.gguf`)));
      expect(remote.entry).toMatchObject({ files: ['m.gguf', 'mmproj-m.gguf'], sha256: together });
    });

    test('needs room for both on the disk before the first byte', async () => {
      server.reportedSizes.set('/owner/repo/resolve/main/mmproj-F16.gguf', 10 ** 15);
      await expect(pull(options('hf:owner/repo')).finally(() => server.reportedSizes.clear())).rejects.toThrow(/not enough disk space/);
      expect(server.ranges).toEqual([]);
    });
  });

  test('lists the quantizations when the choice is ambiguous', async () => {
    repository('Model-Q8_0.gguf', model);
    repository('Model-Q5_K_M.gguf', model);
    await expect(pull(options('hf:owner/repo'))).rejects.toThrow(/choose a quantization .*Model-Q8_0, Model-Q5_K_M/);
    await expect(pull(options('hf:owner/repo:Q2_K'))).rejects.toThrow(/choose a quantization/);
    await expect(pull(options('hf:owner/none:Q2_K'))).rejects.toThrow(/no such repository/);
    expect(() => readSource('hf:owner')).toThrow(DownloadError);
  });

  test('rejects a file whose hash differs from repository, owner or catalogue', async () => {
    repository('Model-Q8_0.gguf', model);
    server.wrongHash = 'ab'.repeat(32);
    await expect(pull(options('hf:owner/repo'))).rejects.toThrow(/the downloaded file is not the requested one/);
    server.wrongHash = null;
    await expect(pull(options('hf:owner/repo', { sha256: 'ab'.repeat(32) }))).rejects.toThrow(/another file than the requested one/);
    await expect(pull(options('hf:owner/repo', { catalogueHashesOf: async () => ['cd'.repeat(32)] }))).rejects.toThrow(
      /catalog lists another file/,
    );
    expect(new ModelStore(join(dir, 'models')).entries()).toEqual([]);
    const good = await pull(options('hf:owner/repo', { catalogueHashesOf: async () => [modelSha256], id: 'my-model' }));
    expect(good).toMatchObject({ verifiedBy: 'catalogue', entry: { id: 'my-model' } });
  });

  test('rejects a file that is no model', async () => {
    server.put('/page.gguf', Buffer.from('<html>Not found, but said with status 200</html>'));
    await expect(pull(options(`${server.url}/page.gguf`))).rejects.toThrow(/GGUF/);
    expect(new ModelStore(join(dir, 'models')).entries()).toEqual([]);
  });

  test('adds a local file in place', async () => {
    const { entry } = await pull(options(demoModel(), { id: 'here' }));
    const store = new ModelStore(join(dir, 'models'));
    expect(store.path(entry)).toBe(demoModel());
    expect(store.remove('here')).toBe(true);
    expect(store.remove('here')).toBe(false);
    expect(existsSync(demoModel())).toBe(true);
  });

  test('from an address is removed with its file', async () => {
    const { entry } = await pull(options(`${server.url}/m.gguf`));
    const store = new ModelStore(join(dir, 'models'));
    expect(existsSync(store.path(entry))).toBe(true);
    store.remove(entry.id);
    expect(existsSync(store.path(entry))).toBe(false);
  });
});

test('hashes are cached while a file is unchanged', async () => {
  const file = join(dir, 'x');
  writeFileSync(file, 'one');
  const cache = join(dir, 'hashes.json');
  expect(await new FileHashes(cache).hashFile(file)).toBe(sha256(Buffer.from('one')));
  expect(await new FileHashes(cache).cachedHash(file)).toBe(sha256(Buffer.from('one')));
  const { mtime } = statSync(file);
  writeFileSync(file, 'two');
  utimesSync(file, mtime, new Date(mtime.getTime() + 1000));
  expect(await new FileHashes(cache).cachedHash(file)).toBeNull();
  expect(await new FileHashes(cache).hashFile(file)).toBe(sha256(Buffer.from('two')));
  writeFileSync(cache, 'not JSON');
  expect(await new FileHashes(cache).hashFile(file)).toBe(sha256(Buffer.from('two')));
  expect(modelHash(['aa', 'bb'])).toBe(sha256(Buffer.from('aa\nbb\n')));
});

test('a file that changes between the end of its hashing and the record is not recorded with the old hash', async () => {
  const file = join(dir, 'changing');
  writeFileSync(file, 'one');
  const cache = join(dir, 'changing-hashes.json');
  class Slow extends FileHashes {
    override async cacheHash(...entry: Parameters<FileHashes['cacheHash']>): Promise<void> {
      writeFileSync(file, 'changed');
      await super.cacheHash(...entry);
    }
  }
  await new Slow(cache).hashFile(file);
  expect(await new FileHashes(cache).cachedHash(file)).toBeNull();
  expect(await new FileHashes(cache).hashFile(file)).toBe(sha256(Buffer.from('changed')));
});

test('a file that changes while it is read has no hash', async () => {
  const file = join(dir, 'growing');
  writeFileSync(file, Buffer.alloc(3 << 20));
  const cache = new FileHashes(join(dir, 'growing-hashes.json'));
  let error: unknown = null;
  const hashing = cache.hashFile(file).catch((reason: unknown) => {
    error = reason;
  });
  for (let settled = false; !settled; ) {
    appendFileSync(file, 'x');
    settled = await Promise.race([hashing.then(() => true), setImmediate(false)]);
  }
  expect(error).toEqual(new ModelFileError(`the file ${file} changed while it was read`));
  expect(await cache.cachedHash(file)).toBeNull();
});

test('hashes of deleted files are dropped', async () => {
  const [deleted, kept] = [join(dir, 'deleted'), join(dir, 'kept')];
  const cache = join(dir, 'dropped-hashes.json');
  const hashes = new FileHashes(cache);
  for (const file of [deleted, kept]) writeFileSync(file, file);
  await hashes.hashFile(deleted);
  rmSync(deleted);
  await hashes.hashFile(kept);
  expect(Object.keys((JSON.parse(readFileSync(cache, 'utf8')) as { files: object }).files)).toEqual([kept]);
});

test('a damaged list of models is reported', () => {
  const store = new ModelStore(dir);
  writeFileSync(join(dir, 'library.json'), '{"version":1,"models":[{"id":"../x"}]}');
  expect(() => store.entries()).toThrow(ModelStoreError);
});

test('progress is a bar with rate and time left, and fits the terminal', () => {
  let now = 0;
  const written: string[] = [];
  const output = { isTTY: true, columns: 80, write: (text: string) => written.push(text) };
  const line = new ProgressLine(output, () => now);
  line.update({ phase: 'downloading', bytes: 0, total: 100e6 });
  now = 100;
  expect(line.update({ phase: 'downloading', bytes: 1e6, total: 100e6 })).toBeNull();
  now = 2000;
  expect(line.update({ phase: 'downloading', bytes: 20e6, total: 100e6 })).toMatchObject({ bytes_per_second: 10e6, seconds_left: 8 });
  expect(written.at(-1)).toMatch(/^\r\S+downloading █+░+ {3}20% {2}20\.0 MB of 100\.0 MB {2}10\.0 MB\/s {2}8 s left$/);
  for (const columns of [120, 80, 60, 40, 10]) {
    now += 1000;
    output.columns = columns;
    line.update({ phase: 'downloading', bytes: 50e6, total: 100e6 });
    expect(widthOf((written.at(-1) ?? '').replace('\r\u001b[K', ''))).toBeLessThan(columns);
  }
  now += 1000;
  output.columns = 80;
  line.update({ phase: 'verifying', bytes: 50e6, total: null });
  expect(written.at(-1)).toContain('verifying 50.0 MB');
});

test('sizes below a gigabyte are in megabytes, so that little free space is not "0.0 GB"', () => {
  expect([0, 48_300_000, 1.5e9, -1].map(byteSizeText)).toEqual(['0.0 MB', '48.3 MB', '1.5 GB', '0.0 MB']);
});
