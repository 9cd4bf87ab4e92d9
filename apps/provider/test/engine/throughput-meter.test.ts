/** Measured throughput of a stream. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Generation, type StreamCommand } from '../../src/engine/generation.js';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

const commands: StreamCommand[] = [];
const newGeneration = () => new Generation(0, (command) => commands.push(command));

/** One delivery of the engine, after `ms` milliseconds. */
function deliver(generation: Generation, ms: number, ...tokens: number[]): void {
  vi.advanceTimersByTime(ms);
  generation.engineWorked();
  for (const count of tokens) generation.push({ text: 'x', tokens: count });
}

test('prefill and decode rates are separate, and null for too few tokens', () => {
  const generation = newGeneration();
  expect([generation.decodeTps, generation.prefillTps]).toEqual([null, null]);
  generation.start({ job: 0, promptTokens: 1000, cachedTokens: 200, startsInsideThinking: false });
  deliver(generation, 400, 1, 2);
  expect(generation.prefillTps).toBe(2000);
  deliver(generation, 100, 7);
  expect(generation.decodeTps).toBeNull();
  deliver(generation, 100, 1);
  expect(generation.decodeTps).toBe(40);
  expect(generation.prefillTps).toBe(2000);
});

test('deliveries that a delayed daemon reads at once are no measurement', () => {
  const generation = newGeneration();
  generation.start({ job: 0, promptTokens: 100, startsInsideThinking: false });
  for (let n = 0; n < 100; n++) deliver(generation, 0.005, 1);
  expect(generation.decodeTps).toBeNull();
  for (let n = 0; n < 99; n++) deliver(generation, 10, 1);
  expect(generation.decodeTps).toBeCloseTo(200, 0);
});

test('a short prompt has no prefill rate', () => {
  const generation = newGeneration();
  generation.start({ job: 0, promptTokens: 100, cachedTokens: 37, startsInsideThinking: false });
  deliver(generation, 400, 1);
  expect(generation.prefillTps).toBeNull();
});

test('the time in which a slow reader pauses the stream is not counted', async () => {
  const generation = newGeneration();
  generation.start({ job: 0, promptTokens: 100, startsInsideThinking: false });
  for (let n = 0; n < 256; n++) deliver(generation, 10, 1);
  expect(commands).toEqual(['pause']);
  expect(generation.decodeTps).toBeCloseTo(100);
  // One more text was under way, and then the reader takes a minute.
  deliver(generation, 10, 1);
  vi.advanceTimersByTime(60_000);
  const batches = generation[Symbol.asyncIterator]();
  await batches.next();
  void batches.next();
  await Promise.resolve();
  expect(commands).toEqual(['pause', 'resume']);
  expect(generation.decodeTps).toBeCloseTo(100);
  for (let n = 0; n < 100; n++) deliver(generation, 10, 1);
  expect(generation.decodeTps).toBeCloseTo(100);
});
