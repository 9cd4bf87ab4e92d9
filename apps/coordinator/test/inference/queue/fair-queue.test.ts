import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FairQueue } from '../../../src/inference/queue/fair-queue.js';

interface Item {
  readonly accountId: string;
  readonly cost: number;
  readonly name: string;
}

const item = (accountId: string, name: string, cost = 1): Item => ({ accountId, cost, name });
const names = (queue: FairQueue<Item>): string[] => [...queue.inOrder()].map(({ name }) => name);

function fill(queue: FairQueue<Item>, accountId: string, count: number, cost = 1): Item[] {
  const items = Array.from({ length: count }, (_, index) => item(accountId, `${accountId}${index}`, cost));
  for (const one of items) queue.add(one);
  return items;
}

/** Serves the next item. */
function serve(queue: FairQueue<Item>): Item | undefined {
  const [next] = queue.inOrder();
  if (next !== undefined) queue.served(next);
  return next;
}

describe('a fair queue', () => {
  it('alternates between accounts, each in order of arrival', () => {
    const queue = new FairQueue<Item>(100);
    fill(queue, 'a', 4);
    fill(queue, 'b', 2);
    expect(names(queue)).toEqual(['a0', 'b0', 'a1', 'b1', 'a2', 'a3']);
  });

  it('serves a new account next, however many requests another has queued', () => {
    const queue = new FairQueue<Item>(100);
    fill(queue, 'a', 50);
    for (let count = 0; count < 10; count++) serve(queue);
    queue.add(item('b', 'late'));
    const order = [serve(queue)?.name, serve(queue)?.name];
    expect(order).toContain('late');
  });

  it('gives no credit for idle time', () => {
    const queue = new FairQueue<Item>(1000);
    fill(queue, 'a', 500);
    for (let count = 0; count < 100; count++) serve(queue);
    fill(queue, 'b', 50);
    const next = Array.from({ length: 20 }, () => serve(queue)?.accountId);
    expect(next.filter((account) => account === 'b').length).toBeLessThanOrEqual(11);
  });

  it('counts work, not requests', () => {
    const queue = new FairQueue<Item>(1000);
    fill(queue, 'long', 50, 10);
    fill(queue, 'short', 100, 1);
    const served = Array.from({ length: 44 }, () => serve(queue)?.accountId);
    expect(served.filter((account) => account === 'long').length).toBeGreaterThanOrEqual(3);
    expect(served.filter((account) => account === 'long').length).toBeLessThanOrEqual(5);
  });

  it('does not let an account jump its turn by leaving and coming back', () => {
    const queue = new FairQueue<Item>(100);
    fill(queue, 'a', 20);
    const counts = { a: 0, b: 0 };
    for (let round = 0; round < 20; round++) {
      queue.add(item('b', `b${round}`));
      const served = serve(queue);
      if (served !== undefined) counts[served.accountId as 'a' | 'b']++;
      for (const one of [...queue.inOrder()]) if (one.accountId === 'b') queue.remove(one);
    }
    expect(Math.abs(counts.a - counts.b)).toBeLessThanOrEqual(1);
  });

  it('displaces from the longest line when full', () => {
    const queue = new FairQueue<Item>(3);
    const [, , newest] = fill(queue, 'a', 3);
    expect(queue.add(item('b', 'b0'))).toBe(newest);
    expect(names(queue)).toEqual(['a0', 'b0', 'a1']);
    const another = item('a', 'a9');
    expect(queue.add(another)).toBe(another);
    const second = item('b', 'b1');
    expect(queue.add(second)).toBe(second);
    expect(queue.size).toBe(3);
  });

  it('counts the items ahead', () => {
    const queue = new FairQueue<Item>(100);
    fill(queue, 'a', 10);
    fill(queue, 'b', 2);
    expect(queue.aheadOf('c')).toBe(2);
    expect(queue.aheadOf('b')).toBe(5);
    expect(queue.aheadOf('a')).toBe(12);
  });

  it('stays within its bound, loses and starves nothing under random changes', () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('add' as const), account: fc.constantFrom('a', 'b', 'c', 'd'), cost: fc.integer({ min: 1, max: 5 }) }),
      fc.record({ kind: fc.constant('serve' as const) }),
      fc.record({ kind: fc.constant('leave' as const), which: fc.nat() }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), fc.integer({ min: 0, max: 6 }), (steps, max) => {
        const queue = new FairQueue<Item>(max);
        const inside = new Set<Item>();
        for (const [index, one] of steps.entries()) {
          if (one.kind === 'add') {
            const added = item(one.account, `${index}`, one.cost);
            inside.add(added);
            const displaced = queue.add(added);
            if (displaced !== null) inside.delete(displaced);
          } else if (one.kind === 'serve') {
            const served = serve(queue);
            if (served !== undefined) inside.delete(served);
          } else {
            const leaving = [...inside][one.which % Math.max(1, inside.size)];
            if (leaving !== undefined) queue.remove(leaving);
            if (leaving !== undefined) inside.delete(leaving);
          }
          expect(queue.size).toBeLessThanOrEqual(max);
          expect(new Set(queue.inOrder())).toEqual(inside);
          expect(queue.size).toBe(inside.size);
        }
      }),
      { numRuns: 300 },
    );
  });

  it('keeps the work of two busy accounts within one request of each other', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 10, maxLength: 40 }), (costs) => {
        const queue = new FairQueue<Item>(1000);
        for (const [index, cost] of costs.entries()) {
          queue.add(item('a', `a${index}`, cost));
          queue.add(item('b', `b${index}`, costs[costs.length - 1 - index] as number));
        }
        const work = { a: 0, b: 0 };
        for (let count = 0; count < costs.length; count++) {
          const served = serve(queue);
          if (served !== undefined) work[served.accountId as 'a' | 'b'] += served.cost;
          expect(Math.abs(work.a - work.b)).toBeLessThanOrEqual(20);
        }
      }),
    );
  });
});
