import { expect, it } from 'vitest';
import { FairBudget } from '../../src/limits/fair-budget.js';
import { networkOf } from '../../src/limits/network-address.js';

it('a single holder gets a share, and a newcomer always finds room', () => {
  const budget = new FairBudget({ maxBytes: 1000, freeMultiple: 1 });
  const first = budget.open({ holder: 'a' }, () => {});
  expect([first?.grow(500), first?.grow(1)]).toEqual([true, false]);
  const second = budget.open({ holder: 'b' }, () => {});
  expect([second?.grow(250), second?.grow(1)]).toEqual([true, true]);
  expect(budget.bytes).toBeLessThanOrEqual(1000);
});

it('smaller holders evict the oldest unfinished claim of the largest holder, never a finished one', () => {
  const budget = new FairBudget({ maxBytes: 1000, freeMultiple: 9 });
  const given: string[] = [];
  const open = (holder: string, name: string, bytes: number) => {
    const claim = budget.open({ holder }, () => given.push(name));
    expect(claim?.grow(bytes)).toBe(true);
    return claim;
  };
  open('large', 'finished', 300)?.finish();
  open('large', 'oldest', 300);
  open('large', 'newest', 300);
  open('small', 'small', 200);
  expect(given).toEqual(['oldest']);
  open('large', 'again', 90);
  // A holder cannot evict its own claims.
  expect(budget.open({ holder: 'large' }, () => {})?.grow(900)).toBe(false);
  expect(given).toEqual(['oldest']);
});

it('a key of an account does not displace the smaller claims of its other keys', () => {
  const budget = new FairBudget({ maxBytes: 1000, freeMultiple: 9 });
  const given: string[] = [];
  const greedy = budget.open({ holder: 'a', member: 'greedy' }, () => given.push('greedy'));
  expect(greedy?.grow(900)).toBe(true);
  const modest = budget.open({ holder: 'a', member: 'modest' }, () => given.push('modest'));
  expect(modest?.grow(100)).toBe(true);
  const more = budget.open({ holder: 'a', member: 'greedy' }, () => {});
  expect(more?.grow(850)).toBe(false);
  expect(given).toEqual(['greedy']);
});

it('at a shared address the oldest claim is evicted, and all bytes are returned', () => {
  const budget = new FairBudget({ maxBytes: 100, freeMultiple: 1, bytesPerClaim: 10, evictsOwn: true });
  const given: number[] = [];
  const claims = Array.from({ length: 8 }, (_, index) => budget.open({ holder: 'a' }, () => given.push(index)));
  expect(given).toEqual([0, 1, 2]);
  for (const claim of claims) claim?.release();
  expect(budget.bytes).toBe(0);
});

it('an IPv6 network counts as one address', () => {
  expect(networkOf('203.0.113.7')).toBe('203.0.113.7');
  expect(networkOf('::ffff:203.0.113.7')).toBe('203.0.113.7');
  expect(networkOf('2001:db8::1')).toBe(networkOf('2001:0db8:0:0:ffff:1:2:3'));
  expect(networkOf('2001:db8:0:1::1')).not.toBe(networkOf('2001:db8::1'));
});
