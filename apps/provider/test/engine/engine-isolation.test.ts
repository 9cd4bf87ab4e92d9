/**
 * Concurrent streams must not affect each other. Releases of the engine library up to 3.21.1 mixed up tokens between concurrent
 * streams; a prompt once got the answer of another. Streams join, leave and are cancelled at random, because lock-step does not
 * show the fault.
 */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runProgram } from '../../../../test/support/program.js';
import { seededRandom } from '../../../../test/support/seeded-random.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { Engine } from '../../src/engine/engine.js';
import { ask, collect, demoModel, startDemoEngine } from '../demo-model.js';

const places = ['France', 'Japan', 'Portugal', 'Norway', 'Chile', 'Peru', 'Kenya', 'Egypt', 'Italy', 'Spain', 'Canada', 'Cuba'];
const prompts = places.flatMap((place) => [
  `What is the capital of ${place}?`,
  `Repeat after me: ${place} red`,
  `Tell me a story about ${place}.`,
  `What is ${place.length} + ${place.charCodeAt(0) % 40}?`,
]);

/** Greedy decoding with bit-exact numbers under any load. */
const repeatable = { seed: 1 };

async function answers(engine: Engine, atOnce: number, random: () => number, maxTokens = 60): Promise<(string | null)[]> {
  const results: (string | null)[] = new Array(prompts.length).fill(null);
  let next = 0;
  const worker = async () => {
    for (let index = next++; index < prompts.length; index = next++) {
      const cancelAfter = random() < 0.2 ? 1 + Math.floor(random() * 12) : Number.POSITIVE_INFINITY;
      const generation = engine.generate(ask(prompts[index] as string, maxTokens, repeatable));
      let text = '';
      let tokens = 0;
      for await (const batch of generation) {
        for (const piece of batch) {
          text += piece.text;
          tokens += piece.tokens;
        }
        if (tokens >= cancelAfter) break;
      }
      // A cancelled stream is compared up to its end.
      results[index] = text;
      if (random() < 0.3) await new Promise((resolve) => setTimeout(resolve, random() * 5));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return results;
}

test('concurrent streams answer exactly as each does alone', async () => {
  const alone = await startDemoEngine(1, {}, 256);
  const reference: string[] = [];
  for (const prompt of prompts) reference.push((await collect(alone.generate(ask(prompt, 60, repeatable)))).text);
  await alone.close();
  expect(new Set(reference).size).toBeGreaterThan(24);

  const engine = await startDemoEngine(16, {}, 256);
  for (const atOnce of [2, 4, 8, 16]) {
    const random = seededRandom(atOnce);
    for (let round = 0; round < 2; round++) {
      const got = await answers(engine, atOnce, random);
      const wrong = got.flatMap((text, index) =>
        text !== null && reference[index]?.startsWith(text) ? [] : [{ atOnce, prompt: prompts[index], text, expected: reference[index] }],
      );
      expect(wrong).toEqual([]);
    }
  }
  await engine.close();
});

test('concurrent streams of several models answer exactly as each does alone', async () => {
  const directory = temporaryDirectory('isolation');
  const engines: Engine[] = [];
  try {
    const other = join(directory, 'half.gguf');
    await runProgram('scripts/make-model.ts', ['--out', other, '--type', 'F16', '--endless']);
    const models = [demoModel(), other];
    const references = await Promise.all(
      models.map(async (modelPath) => {
        const alone = await Engine.start({ settings: { modelPath, slots: 1, contextSize: 256, gpu: 'none' } });
        engines.push(alone);
        const texts: string[] = [];
        for (const prompt of prompts) texts.push((await collect(alone.generate(ask(prompt, 24, repeatable)))).text);
        await alone.close();
        return texts;
      }),
    );
    expect(new Set(references.flat()).size).toBeGreaterThan(60);
    const shared = await Promise.all(
      models.map((modelPath) => Engine.start({ settings: { modelPath, slots: 6, contextSize: 256, gpu: 'none' } })),
    );
    engines.push(...shared);
    const got = await Promise.all(shared.map((engine, index) => answers(engine, 5, seededRandom(50 + index), 24)));
    for (const [model, texts] of got.entries()) {
      const wrong = texts.flatMap((text, index) => {
        const expected = references[model]?.[index];
        return text !== null && expected?.startsWith(text) ? [] : [{ model, prompt: prompts[index], text, expected }];
      });
      expect(wrong).toEqual([]);
    }
  } finally {
    await Promise.all(engines.map((engine) => engine.close()));
  }
});
