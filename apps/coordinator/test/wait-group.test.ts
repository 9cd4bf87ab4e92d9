import { expect, it } from 'vitest';
import { WaitGroup } from '../src/wait-group.js';

it('resolves at once when nothing runs', async () => {
  await new WaitGroup().wait();
});

it('resolves all waits when the last operation ends', async () => {
  const group = new WaitGroup();
  const ended: string[] = [];
  group.add();
  group.add();
  const waits = ['first', 'second'].map((name) => group.wait().then(() => ended.push(name)));
  group.done();
  await Promise.resolve();
  expect([group.count, ended]).toEqual([1, []]);
  group.done();
  await Promise.all(waits);
  expect([group.count, ended]).toEqual([0, ['first', 'second']]);
});

it('waits again for operations that begin later', async () => {
  const group = new WaitGroup();
  group.add();
  group.done();
  group.add();
  let hasEnded = false;
  const wait = group.wait().then(() => {
    hasEnded = true;
  });
  await Promise.resolve();
  expect(hasEnded).toBe(false);
  group.done();
  await wait;
});
