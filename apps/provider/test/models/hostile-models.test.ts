/**
 * Malicious model files: reading any header is fast, takes little memory, and ends in facts or one sentence. Files that pass the
 * reader are loaded in the engine's process, so a crash ends only that process.
 */
import { closeSync, ftruncateSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { seededRandom } from '../../../../test/support/seeded-random.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { Engine } from '../../src/engine/engine.js';
import { EngineStartError } from '../../src/model-process/supervised-process.js';
import { ModelFileError } from '../../src/models/gguf-header.js';
import { readModelFacts } from '../../src/models/model-facts.js';
import { demoModel } from '../demo-model.js';

const dir = temporaryDirectory('hostile');
const path = join(dir, 'hostile.gguf');

/** The facts, or the sentence of the refusal. Other errors fail the test. */
function read(bytes: Uint8Array, file = path): unknown {
  writeFileSync(file, bytes);
  try {
    return readModelFacts(file);
  } catch (error) {
    if (error instanceof ModelFileError) return error.message;
    throw error;
  }
}

const u32 = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
};
const u64 = (value: bigint | number) => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
};
const text = (value: string | Buffer) => Buffer.concat([u64(Buffer.from(value).length), Buffer.from(value)]);
const head = (tensors: bigint | number, keys: bigint | number, version = 3) =>
  Buffer.concat([Buffer.from('GGUF'), u32(version), u64(tensors), u64(keys)]);
const pair = (key: string, type: number, value: Buffer) => Buffer.concat([text(key), u32(type), value]);
const STRING = 8;
const ARRAY = 9;
const MAX = 2n ** 64n - 1n;

describe('claims of a header', () => {
  test.each<[string, Buffer, RegExp]>([
    ['as many tensors as can be counted', head(MAX, 0), /claims \d+ tensors/],
    ['as many keys as can be counted', head(0, MAX), /claims \d+ keys/],
    ['a key as long as can be said', Buffer.concat([head(0, 1), u64(MAX)]), /claims \d+ bytes of text/],
    ['a value longer than the file', Buffer.concat([head(0, 1), pair('a', STRING, u64(1000))]), /its header is incomplete/],
    [
      'a list as long as can be said',
      Buffer.concat([head(0, 1), pair('a', ARRAY, Buffer.concat([u32(0), u64(MAX)]))]),
      /claims \d+ values/,
    ],
    [
      'a list longer than the file',
      Buffer.concat([head(0, 1), pair('a', ARRAY, Buffer.concat([u32(12), u64(1 << 23)]))]),
      /its header is incomplete/,
    ],
    [
      'a list of lists, deep',
      Buffer.concat([head(0, 1), pair('a', ARRAY, Buffer.concat(Array(1000).fill(Buffer.concat([u32(ARRAY), u64(1)]))))]),
      /unknown type 9/,
    ],
    ['a type that is none', Buffer.concat([head(0, 1), pair('a', 13, u64(0))]), /unknown type 13/],
    ['a tensor of many dimensions', Buffer.concat([head(1, 0), text('t'), u32(MAX > 1n ? 0xffffffff : 0)]), /has 4294967295 dimensions/],
    [
      'a tensor larger than any file',
      Buffer.concat([head(1, 0), text('t'), u32(4), ...Array(4).fill(u64(2n ** 40n)), u32(0), u64(0)]),
      /larger than any file/,
    ],
    ['a tensor at the end of the world', Buffer.concat([head(1, 0), text('t'), u32(1), u64(4), u32(0), u64(MAX)]), /larger than any file/],
    ['an alignment of nothing', Buffer.concat([head(0, 1), pair('general.alignment', 4, u32(0))]), /alignment/],
    ['another version', head(0, 0, 9), /version 9/],
  ])('%s are rejected', (_what, bytes, sentence) => {
    expect(read(bytes)).toMatch(sentence);
  });

  test("take time and memory bounded by the file's bytes", () => {
    // A sparse gigabyte: every key is an empty text of type 0.
    const sparse = join(dir, 'sparse.gguf');
    writeFileSync(sparse, head(1 << 20, 4096));
    const file = openSync(sparse, 'r+');
    ftruncateSync(file, 2 ** 30);
    closeSync(file);
    const before = process.memoryUsage().rss;
    expect(() => readModelFacts(sparse)).toThrow(ModelFileError);
    expect(process.memoryUsage().rss - before).toBeLessThan(300e6);
  });
});

describe('values of the wrong type', () => {
  const model = (...pairs: Buffer[]) => Buffer.concat([head(0, pairs.length), ...pairs, Buffer.alloc(64)]);
  const tokens = pair('tokenizer.ggml.tokens', ARRAY, Buffer.concat([u32(STRING), u64(1), text('a')]));
  const architecture = pair('general.architecture', STRING, text('llama'));
  const context = pair('llama.context_length', 4, u32(4096));

  test.each<[string, Buffer]>([
    ['an architecture that is a number', model(pair('general.architecture', 4, u32(7)), context, tokens)],
    ['a context that is a text', model(architecture, pair('llama.context_length', STRING, text('long')), tokens)],
    ['a context of nothing', model(architecture, pair('llama.context_length', 4, u32(0)), tokens)],
    ['tokens that are no list', model(architecture, context, pair('tokenizer.ggml.tokens', 4, u32(1)))],
    ['no architecture', model(context, tokens)],
  ])('%s is rejected', (_what, bytes) => {
    expect(read(bytes)).toMatch(/holds no language model/);
  });

  test('elsewhere are harmless: invalid names, templates and sizes', () => {
    const facts = read(
      model(
        architecture,
        context,
        tokens,
        pair('general.name', 4, u32(7)),
        pair('tokenizer.chat_template', 7, Buffer.from([1])),
        pair('llama.block_count', STRING, text('many')),
        pair('llama.attention.head_count', 4, u32(0)),
        pair('llama.expert_count', 12, Buffer.from(Float64Array.of(Number.NaN).buffer)),
        pair('split.count', STRING, text('x')),
        pair('llama.pooling_type', STRING, text('mean')),
      ),
    );
    expect(facts).toMatch(/one of NaN/);
    const whole = read(
      model(
        architecture,
        context,
        tokens,
        pair('general.name', STRING, text(Buffer.from([0xff, 0xfe, 0x1b, 0x5b, 0x32, 0x4a]))),
        pair('llama.attention.head_count', 4, u32(0)),
      ),
    );
    expect(whole).toMatchObject({ thinkTags: null, embedding: null, trainedContext: 4096 });
    expect((whole as { id: string }).id).toMatch(/^[a-z0-9][a-z0-9._-]*$/);
    expect((whole as { displayName: string }).displayName).not.toContain(String.fromCharCode(27));
  });
});

test('damage anywhere in the header ends in facts or in one sentence', () => {
  const whole = readFileSync(demoModel());
  const random = seededRandom(7);
  const INTERESTING = [0, 1, 0x7f, 0x80, 0xff];
  for (let i = 0; i < 150; i++) {
    const damaged = Buffer.from(whole.subarray(0, 200_000));
    const near = Math.floor(random() * (i % 3 === 0 ? 3000 : 190_000));
    for (let n = 0; n < 1 + (i % 6); n++) {
      damaged[near + Math.floor(random() * 40)] = INTERESTING[Math.floor(random() * INTERESTING.length)] ?? Math.floor(random() * 256);
    }
    const result = read(damaged.subarray(0, i % 4 === 0 ? Math.floor(random() * damaged.length) : damaged.length));
    if (typeof result === 'string') expect(result).toMatch(/^the (model )?(file|model)/);
    else expect(result).toHaveProperty('id');
  }
});

test('random bytes after a valid magic number end in one sentence', () => {
  const random = seededRandom(11);
  for (let i = 0; i < 100; i++) {
    const bytes = Buffer.from(Array.from({ length: 24 + Math.floor(random() * 400) }, () => Math.floor(random() * 256)));
    head(i % 5, i % 7).copy(bytes);
    expect(typeof read(bytes)).toBe('string');
  }
});

test('files that pass the reader but crash llama.cpp, or are rejected there, end in a sentence', async () => {
  const whole = readFileSync(demoModel());
  const replace = (from: string, to: Buffer) => {
    const bytes = Buffer.from(whole);
    const at = bytes.indexOf(from);
    expect(at).toBeGreaterThan(0);
    to.copy(bytes, at + Buffer.byteLength(from));
    return bytes;
  };
  // The value's type follows the key's name, and the value follows the type.
  for (const bytes of [
    replace('attention.head_count', Buffer.concat([u32(4), u32(0)])),
    replace('block_count', Buffer.concat([u32(4), u32(0xffffffff)])),
    replace('embedding_length', Buffer.concat([u32(4), u32(7)])),
  ]) {
    const facts = read(bytes);
    if (typeof facts === 'string') continue;
    const failure = await Engine.start({ settings: { modelPath: path, slots: 1, contextSize: 256, gpu: 'none' } }).then(
      async (engine) => {
        await engine.close();
        return 'loaded';
      },
      (error: unknown) => error,
    );
    expect(failure).toBeInstanceOf(EngineStartError);
  }
});

test.each([
  ['an architecture that llama.cpp does not know is named', 'qwen3', 'zzzzz', /unknown model architecture: 'zzzzz'/],
  [
    'a template that can render nothing is no model to offer',
    "{{- '<|im_start|>assistant\\n' }}",
    '{{- unknown() }}',
    /chat template cannot be rendered/,
  ],
])('%s', async (_, from, to, message) => {
  const text = readFileSync(demoModel(), 'latin1');
  writeFileSync(path, text.replaceAll(from, to.padEnd(from.length)), 'latin1');
  await expect(Engine.start({ settings: { modelPath: path, slots: 1, contextSize: 256, gpu: 'none' } })).rejects.toThrow(message);
});
