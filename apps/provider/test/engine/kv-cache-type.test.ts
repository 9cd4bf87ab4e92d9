/** The element type of the KV cache, through real engines: answers, memory, and models whose cache cannot be quantized. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { writeProjector } from '../../../../scripts/fixtures/gguf/projector.js';
import { runProgram } from '../../../../test/support/program.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { checkModel } from '../../src/doctor/machine-checks.js';
import { Engine } from '../../src/engine/engine.js';
import type { EngineSettings } from '../../src/engine/messages.js';
import { readModelFacts } from '../../src/models/model-facts.js';
import { ask, collect, demoModel } from '../demo-model.js';

const folder = temporaryDirectory('kv-cache-type');
const narrow = join(folder, 'narrow.gguf');
beforeAll(async () => {
  // Heads of 16 elements, half a block of q8_0.
  await runProgram('scripts/make-model.ts', ['--out', narrow, '--dim', '64', '--heads', '4', '--kv-heads', '4']);
});

async function withEngine<Result>(settings: Partial<EngineSettings>, use: (engine: Engine) => Promise<Result>): Promise<Result> {
  const engine = await Engine.start({ settings: { modelPath: demoModel(), slots: 2, contextSize: 512, gpu: 'none', ...settings } });
  try {
    return await use(engine);
  } finally {
    await engine.close();
  }
}

const answer = async (engine: Engine) => (await collect(engine.generate(ask('What is the capital of France?', 60)))).text;

function residentBytes({ pid }: Engine): number {
  return 1024 * Number(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' }));
}

test('a quantized cache needs less memory, and the answer stays sensible', async () => {
  // 131,072 tokens of 2,048 bytes in f16.
  const settings = { slots: 64, contextSize: 2048 };
  const measure = async (engine: Engine) => ({ text: await answer(engine), bytes: residentBytes(engine) });
  const full = await withEngine({ ...settings, kvCacheType: 'f16' }, measure);
  const quantized = await withEngine({ ...settings, kvCacheType: 'q8_0' }, measure);
  expect(full.text).toContain('Paris');
  expect(quantized.text).toContain('Paris');
  const cacheBytes = settings.slots * settings.contextSize * readModelFacts(demoModel()).cacheBytesPerToken;
  const saved = (full.bytes - quantized.bytes) / cacheBytes;
  expect(saved).toBeGreaterThan(0.3);
  expect(saved).toBeLessThan(0.6);
});

test('a vision model has a quantized cache, too', async () => {
  const projectorPath = join(folder, 'mmproj.gguf');
  writeProjector(projectorPath, { imageSize: 32, patchSize: 8, dim: 32, heads: 2, layers: 1, ff: 64, outputLength: 256 }, 1);
  const text = await withEngine({ kvCacheType: 'q8_0' }, answer);
  expect(await withEngine({ type: 'vision', projectorPath, kvCacheType: 'q8_0' }, answer)).toBe(text);
});

test('doctor reports a model that keeps f16, and the engine names the setting', async () => {
  expect(readModelFacts(narrow).canQuantizeCache).toBe(false);
  const settings = { slots: 1, context: 512, reserve: null, kvCacheType: 'q8_0' } as const;
  const states = async (path: string) => (await checkModel({ path, projectorPath: null }, settings)).map(({ state }) => state);
  expect(await states(narrow)).toEqual(['ok', 'note']);
  expect(await states(demoModel())).toEqual(['ok']);
  await expect(withEngine({ modelPath: narrow, kvCacheType: 'q8_0' }, answer)).rejects.toThrow(/kv_cache_type = "f16"/);
});
