import { expect, it } from 'vitest';
import { PermitHome } from '../../../src/cluster/permits/permit-home.js';

it('counts no window that has ended, although an older and longer one is open', () => {
  let now = 0;
  const rules = new Map([
    ['day', { max: 10, windowMs: 86_400_000 }],
    ['second', { max: 10, windowMs: 1000 }],
  ]);
  const home = new PermitHome(rules, () => now);
  const take = (limit: string, key: string) => home.take('near', { limit, key, need: 1, want: 1, min: 1, earlier: null }, 2);
  take('day', 'long');
  for (let index = 1; index < 20_000; index++) expect(take('second', `short ${index}`)).not.toBeNull();
  expect(take('second', 'one more')).toBeNull();
  now += 1000;
  expect(take('second', 'one more')).toMatchObject({ granted: 1 });
  expect(take('day', 'long')).toMatchObject({ granted: 1, remaining: 8 });
});

it('counts a window that ended and opened again once', () => {
  let now = 0;
  const home = new PermitHome(new Map([['second', { max: 10, windowMs: 1000 }]]), () => now);
  const take = (key: string) => home.take('near', { limit: 'second', key, need: 1, want: 1, min: 1, earlier: null }, 2);
  for (let round = 0; round < 50; round++, now += 1000) for (let index = 0; index < 100; index++) expect(take(`${index}`)).not.toBeNull();
  let opened = 0;
  while (opened < 30_000 && take(`new ${opened}`) !== null) opened++;
  expect(opened).toBe(20_000);
});
