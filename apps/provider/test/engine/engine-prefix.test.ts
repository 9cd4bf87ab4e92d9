/** Prefix reuse of an engine: reused tokens, scopes, and the reported count. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Engine } from '../../src/engine/engine.js';
import type { Generation } from '../../src/engine/generation.js';
import { ask, collect, conversation, startDemoEngine } from '../demo-model.js';

const [alice, bob, carol] = ['a'.repeat(32), 'b'.repeat(32), 'c'.repeat(32)] as const;
/** Prompt tokens that a repeatable request always computes. */
const SLICE = 64;
const question = 'What is the capital of France?';

let engine: Engine;
beforeAll(async () => {
  engine = await startDemoEngine(3);
});
afterAll(() => engine.close());

async function run(generation: Generation) {
  const answer = await collect(generation);
  return { ...answer, cachedTokens: generation.started?.cachedTokens ?? 0 };
}

test('a seeded conversation recomputes generated tokens and the end of its prompt', async () => {
  const sampling = { seed: 5 };
  const long = `Repeat after me: ${'the red boat went over the sea '.repeat(20)}`;
  const first = await run(engine.generate({ ...ask(long, 20, sampling), cacheScope: alice }));
  const again = await run(engine.generate({ ...ask(long, 20, sampling), cacheScope: alice }));
  expect(again.cachedTokens).toBe(first.promptTokens - SLICE);
  const messages = [
    { role: 'user', content: long },
    { role: 'assistant', content: first.text },
    { role: 'user', content: 'Thank you.' },
  ] as const;
  const second = await run(engine.generate({ ...ask('', 20, sampling), prompt: conversation(messages), cacheScope: alice }));
  expect(second.cachedTokens).toBe(Math.min(first.promptTokens, second.promptTokens - SLICE));
});

test.each([
  ['greedy', {}],
  ['warm', { temperature: 0.3, topK: 1 }],
])('the second turn of a %s conversation computes only new tokens', async (_what, sampling) => {
  const first = await run(engine.generate({ ...ask(question, 60, sampling), cacheScope: alice }));
  expect(first.cachedTokens).toBeLessThan(first.promptTokens);
  const messages = [
    { role: 'user', content: question },
    { role: 'assistant', content: first.text },
    { role: 'user', content: 'Thank you.' },
  ] as const;
  const second = await run(engine.generate({ ...ask('', 20, sampling), prompt: conversation(messages), cacheScope: alice }));
  expect(second.cachedTokens).toBe(first.promptTokens + first.completionTokens);
  expect(second.promptTokens).toBeGreaterThan(second.cachedTokens);
});

test.each([
  ['another scope', alice, carol],
  ['no scope', alice, null],
  ['a scope, of what had none', null, 'd'.repeat(32)],
])('%s reuses nothing', async (_what, left, wanted) => {
  const prompt = ask(`Repeat after me: ${left} ${wanted}`, 10);
  await collect(engine.generate({ ...prompt, cacheScope: left }));
  const again = await run(engine.generate({ ...prompt, cacheScope: wanted }));
  expect(again.cachedTokens).toBe(0);
});

test('an abandoned answer is reused up to its end', async () => {
  const story = { ...ask('Tell me a long story about the sea.', 200, { temperature: 0.2 }), cacheScope: bob };
  const generation = engine.generate(story);
  for await (const _ of generation) break;
  const again = await run(engine.generate({ ...story, maxTokens: 5 }));
  expect(again.cachedTokens).toBe(again.promptTokens - 1);
});
