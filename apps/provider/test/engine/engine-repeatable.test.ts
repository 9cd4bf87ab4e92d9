/**
 * Requests with a seed give the same text each time, also at temperature 0: alone and under load, with a cold and a warm cache.
 * Weights: the demo model, with kernels that compute a row the same way in any batch; half precision, without such kernels; and
 * separated streams, as on a GPU. Also with a quantized KV cache, which has attention kernels of its own.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runProgram } from '../../../../test/support/program.js';
import { seededRandom } from '../../../../test/support/seeded-random.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { Engine } from '../../src/engine/engine.js';
import type { Generation } from '../../src/engine/generation.js';
import type { EngineSettings, GenerationRequest } from '../../src/engine/messages.js';
import { ask, collect, conversation, demoModel } from '../demo-model.js';

const directory = temporaryDirectory('repeatable');
const half = join(directory, 'half.gguf');
beforeAll(async () => {
  await runProgram('scripts/make-model.ts', ['--out', half, '--preset', 'tiny', '--type', 'F16', '--endless']);
});

const models: [string, () => string, Pick<EngineSettings, 'keepApart' | 'kvCacheType'>][] = [
  ['the demo model', demoModel, {}],
  ['the demo model, with a quantized KV cache', demoModel, { kvCacheType: 'q8_0' }],
  ['half precision', () => half, {}],
  ['half precision, kept apart', () => half, { keepApart: true }],
];

const scope = 'a'.repeat(32);
const words = 'the red boat went over the sea to the far land and came back '.repeat(6);
/** Prompts shorter than a slice, of one slice, of several slices, and longer than a batch (512 tokens). */
const requests: GenerationRequest[] = [
  ask('Tell me a story about Mia.', 40, { seed: 10 }),
  ask('Tell me a story about Mia.', 40, { temperature: 1.5, seed: 11 }),
  ask(`Tell me about this: ${words}`, 40, { seed: 13 }),
  ask(`Tell me about this: ${words}`, 40, { temperature: 1, seed: 12, topP: 0.9 }),
  ask(`Tell me about all this: ${words.repeat(2)}`, 20, { seed: 14 }),
  ask(`Tell me about very much: ${words.repeat(4)}`, 20, { seed: 15 }),
].map((request) => ({ ...request, cacheScope: scope }));

/** Log probabilities of each token. Stops reading before `until`, so the engine has to pause the stream. */
async function numbers(generation: Generation, until?: Promise<unknown>): Promise<string[]> {
  const seen: string[] = [];
  for await (const batch of generation) {
    for (const { logprobs = [] } of batch) for (const each of logprobs) seen.push(JSON.stringify(each));
    await until;
  }
  return seen;
}

/** The first token with different numbers. Null: none. */
function firstDifference(one: readonly string[], other: readonly string[]): Readonly<Record<string, unknown>> | null {
  const at = Array.from({ length: Math.max(one.length, other.length) }).findIndex((_, index) => one[index] !== other[index]);
  return at === -1 ? null : { token: at, of: [one.length, other.length], one: one[at], other: other[at] };
}

describe.each(models)('on %s', (_what, modelPath, settings) => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await Engine.start({ settings: { modelPath: modelPath(), slots: 6, contextSize: 4096, gpu: 'none', ...settings } });
  });
  afterAll(() => engine.close());

  const text = async (request: GenerationRequest) => (await collect(engine.generate(request))).text;
  /** Reuses nothing and leaves nothing in the cache. */
  const cold = (request: GenerationRequest) => ({ ...request, cacheScope: null });

  test('the same request gives the same text, alone, under load, cold and warm', async () => {
    const reference: string[] = [];
    for (const request of requests) reference.push(await text(cold(request)));
    for (const request of requests) {
      expect(await text(request)).toBe(reference[requests.indexOf(request)]);
      expect(await text(request)).toBe(reference[requests.indexOf(request)]);
    }
    const random = seededRandom(3);
    let running = true;
    const load = Array.from({ length: 3 }, async (_, worker) => {
      for (let round = 0; running; round++) {
        await collect(
          engine.generate(ask(`${worker} ${round} ${words.slice(0, random() * words.length)}`, 5 + random() * 20, { temperature: 1 })),
        );
      }
    });
    for (let round = 0; round < 2; round++) {
      const texts = await Promise.all(requests.map((request) => text(random() < 0.5 ? request : cold(request))));
      expect(texts).toEqual(reference);
    }
    running = false;
    await Promise.all(load);
  });

  test('numbers are bit-exact beside streams that join, leave, pause and leave gaps', async () => {
    const wanted = { ...ask('Tell me a story about Mia.', 350, { seed: 16 }), logprobs: 20 };
    const alone = await numbers(engine.generate(wanted));
    expect(alone.length).toBeGreaterThan(20);
    // The first sequences are taken in order; streams that end early leave gaps between the ids of the others.
    const crowd = [wanted, ask('One.', 4), wanted, ask('Two.', 12), wanted, ask('Three.', 30, { temperature: 1 })];
    const [first, , paused, , third] = crowd.map((request) => engine.generate(request));
    const quick = Promise.all([first, third].map((generation) => numbers(generation as Generation)));
    const slow = numbers(paused as Generation, quick);
    for (const beside of [...(await quick), await slow]) expect(firstDifference(beside, alone)).toBeNull();
  });

  test('temperature 0 without a seed is repeatable on an idle engine, and reuses the whole prefix', async () => {
    const plain = { ...ask(`Tell me about that: ${words}`, 20), logprobs: 3 };
    const first = await numbers(engine.generate(plain));
    expect(firstDifference(await numbers(engine.generate(plain)), first)).toBeNull();
    await collect(engine.generate({ ...plain, cacheScope: scope }));
    const again = engine.generate({ ...plain, cacheScope: scope });
    const { promptTokens } = await collect(again);
    expect(again.started?.cachedTokens).toBe(promptTokens - 1);
  });

  test('a second turn gives the same text with and without reuse', async () => {
    const [first] = requests as [GenerationRequest];
    const answer = await text(first);
    const next = conversation([
      { role: 'user', content: 'Tell me a story about Mia.' },
      { role: 'assistant', content: answer },
      { role: 'user', content: 'And then?' },
    ]);
    const second = { ...first, prompt: next };
    const anew = await text(cold(second));
    expect(await text(second)).toBe(anew);
  });
});
