import { expect, test } from 'vitest';
import { Rounds } from '../src/engine/process/rounds.js';
import { seededRandom } from './demo-model.js';

test('one stream alone never waits', () => {
  const rounds = new Rounds();
  expect(rounds.enter()).toBeNull();
  for (let i = 0; i < 3; i++) expect(rounds.again()).toBeNull();
  rounds.leave();
  expect(rounds.enter()).toBeNull();
});

test('streams that come, pause and go at random step together, and none waits for ever', async () => {
  const rounds = new Rounds();
  const random = seededRandom(7);
  let running = 0;
  let most = 0;
  const steps: number[] = [];
  const stream = async (length: number) => {
    await new Promise((resolve) => setTimeout(resolve, random() * 20));
    await rounds.enter();
    for (let step = 0; step < length; step++) {
      running += 1;
      most = Math.max(most, running);
      await new Promise((resolve) => setTimeout(resolve, random() * 2));
      running -= 1;
      steps.push(step);
      if (random() < 0.1) {
        rounds.leave();
        await new Promise((resolve) => setTimeout(resolve, random() * 5));
        await rounds.enter();
      } else await rounds.again();
    }
    rounds.leave();
  };
  await Promise.all(Array.from({ length: 8 }, () => stream(30)));
  expect(steps).toHaveLength(240);
  expect(most).toBe(8);
  expect(rounds.enter()).toBeNull();
});

test('prompts that are decoded at once share a batch', () => {
  const rounds = new Rounds();
  rounds.enter();
  rounds.prefilling = 1;
  expect(rounds.partTokens()).toBe(511);
  rounds.prefilling = 4;
  expect(rounds.partTokens()).toBe(127);
  rounds.prefilling = 100;
  expect(rounds.partTokens()).toBe(32);
});
