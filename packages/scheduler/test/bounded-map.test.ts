import { expect, it } from 'vitest';
import { BoundedMap } from '../src/bounded-map.js';

it('forgets the oldest entries beyond its bound', () => {
  const map = new BoundedMap<string, number>(2).set('a', 1).set('b', 2);
  expect([...map]).toEqual([
    ['a', 1],
    ['b', 2],
  ]);
  map.set('a', 3);
  expect([...map.keys()]).toEqual(['b', 'a']);
  map.set('c', 4);
  expect([...map]).toEqual([
    ['a', 3],
    ['c', 4],
  ]);
  map.delete('a');
  map.set('d', 5);
  expect([...map.keys()]).toEqual(['c', 'd']);
});

it('treats undefined as a key like any other', () => {
  const map = new BoundedMap<number | undefined, number>(1).set(undefined, 1);
  expect(map.get(undefined)).toBe(1);
  expect([...map.set(2, 2).keys()]).toEqual([2]);
});
