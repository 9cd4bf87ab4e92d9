import { expect, it } from 'vitest';
import { SignInQueue, SignInQueueFull } from '../../../src/accounts/passwords/sign-in-queue.js';

const NEVER = new AbortController().signal;

/** Queue with tasks that end only when the test lets them. */
function heldQueue(options: ConstructorParameters<typeof SignInQueue>[0]) {
  const queue = new SignInQueue(options);
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const errors: Record<string, unknown> = {};
  const add = (client: string, name: string, signal = NEVER): void => {
    const task = (): Promise<void> => {
      begun.push(name);
      return new Promise((resolve) => ends.push(resolve));
    };
    queue.run(client, signal, task).catch((error: unknown) => {
      errors[name] = error;
    });
  };
  const endOne = async (): Promise<void> => {
    ends.shift()?.();
    await settled();
  };
  return { queue, begun, errors, add, endOne };
}

function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

it('limits concurrency and serves clients round-robin, so that a burst delays only its own client', async () => {
  const { queue, begun, add, endOne } = heldQueue({ maxRunning: 2 });
  for (let index = 0; index < 6; index++) add('attacker', `attack ${index}`);
  add('ada', 'ada 0');
  add('ben', 'ben 0');
  await settled();
  expect(begun).toEqual(['attack 0', 'attack 1']);
  expect([queue.runningCount, queue.waitingCount]).toEqual([2, 6]);
  for (let index = 0; index < 3; index++) await endOne();
  expect(begun.slice(2)).toEqual(['attack 2', 'ada 0', 'ben 0']);
  while (queue.runningCount > 0) await endOne();
  expect(begun).toHaveLength(8);
  expect([queue.runningCount, queue.waitingCount]).toEqual([0, 0]);
});

it('rejects a client with too many waiting requests, and displaces from the longest line', async () => {
  const { queue, errors, add } = heldQueue({ maxRunning: 1, maxWaiting: 4, maxWaitingPerClient: 3 });
  for (let index = 0; index < 5; index++) add('attacker', `attack ${index}`);
  await settled();
  expect(errors).toEqual({ 'attack 4': new SignInQueueFull('client') });
  add('ada', 'ada');
  add('ben', 'ben');
  await settled();
  expect(Object.keys(errors)).toEqual(['attack 4', 'attack 3']);
  add('carl', 'carl');
  add('dora', 'dora');
  await settled();
  expect(Object.keys(errors).sort()).toEqual(['attack 2', 'attack 3', 'attack 4', 'dora']);
  expect(errors.dora).toEqual(new SignInQueueFull('all'));
  expect(queue.waitingCount).toBe(4);
});

it('drops clients that disconnect while waiting', async () => {
  const { queue, begun, errors, add, endOne } = heldQueue({ maxRunning: 1 });
  const left = new AbortController();
  add('ada', 'ada 0');
  add('ada', 'ada 1', left.signal);
  add('ada', 'ada 2');
  left.abort(new Error('left'));
  await settled();
  expect([queue.waitingCount, errors]).toEqual([1, { 'ada 1': new Error('left') }]);
  await endOne();
  expect(begun).toEqual(['ada 0', 'ada 2']);
  await endOne();
  expect(queue.runningCount).toBe(0);
});
