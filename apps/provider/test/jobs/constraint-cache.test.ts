import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { timerCountOf } from '../../../../test/support/own-timers.js';
import { ConstraintCache } from '../../src/jobs/constraint/constraint-cache.js';
import type { CompiledConstraint, ConstraintRequest } from '../../src/jobs/constraint/output-constraint.js';

const ONE = 'a'.repeat(32);
const OTHER = 'b'.repeat(32);

let timerCount: () => number;
beforeEach(() => {
  vi.useFakeTimers();
  timerCount = timerCountOf('/constraint/constraint-cache');
});
afterEach(() => void vi.useRealTimers());

function constraint(name: string): ConstraintRequest {
  const tools = [{ name, parameters: {}, strict: true }];
  return { tools, toolChoice: { type: 'auto' }, parallelToolCalls: true, responseFormat: { type: 'text' } } as unknown as ConstraintRequest;
}

/** A constraint whose grammar has one rule of so many empty alternatives. */
function compiled(alternatives = 1): CompiledConstraint {
  return { grammar: { classes: [], rules: [Array.from({ length: alternatives }, () => [])] }, coversWholeOutput: false };
}

/** A cache with functions by names of constraints. */
function cacheOf() {
  const cache = new ConstraintCache();
  const keyOf = (scope: string, name: string) => cache.keyOf(constraint(name), scope) as string;
  const add = (scope: string, name: string, value = compiled()) => cache.add(keyOf(scope, name), scope, value);
  const has = (scope: string, name: string) => cache.get(keyOf(scope, name)) !== null;
  return { cache, add, has };
}

test('returns the constraint of the same scope and text', () => {
  const { cache, add, has } = cacheOf();
  const value = compiled();
  add(ONE, 'paint', value);
  expect(cache.get(cache.keyOf(constraint('paint'), ONE) as string)).toBe(value);
  expect([has(OTHER, 'paint'), has(ONE, 'print')]).toEqual([false, false]);
});

test('has no key without a scope or for a large constraint', () => {
  const { cache } = cacheOf();
  expect(cache.keyOf(constraint('paint'), null)).toBeNull();
  expect(cache.keyOf(constraint('p'.repeat(70_000)), ONE)).toBeNull();
});

test('keys do not contain the text', () => {
  const { cache } = cacheOf();
  expect(cache.keyOf(constraint('PLANTED'), ONE)).not.toContain('PLANTED');
});

test('leaves out large grammars, also if they have few rules', () => {
  const { add, has } = cacheOf();
  add(ONE, 'large', compiled(100_001));
  add(ONE, 'small', compiled(100_000));
  expect([has(ONE, 'large'), has(ONE, 'small')]).toEqual([false, true]);
});

test('evicts the least recently used entries for the limit of all grammars', () => {
  const { add, has } = cacheOf();
  for (let i = 0; i < 10; i++) add(`scope-${i}`, 'tool', compiled(100_000));
  expect(has('scope-0', 'tool')).toBe(true);
  add(ONE, 'tool', compiled(100_000));
  expect([has('scope-0', 'tool'), has('scope-1', 'tool'), has('scope-2', 'tool'), has(ONE, 'tool')]).toEqual([true, false, true, true]);
});

test('the schema of a tool counts only if the grammar enforces it', () => {
  const { cache } = cacheOf();
  const keyOf = (strict: boolean, type: string) => {
    const request = { ...constraint('paint'), tools: [{ name: 'paint', parameters: { type }, strict }] } as unknown as ConstraintRequest;
    return cache.keyOf(request, ONE);
  };
  expect(keyOf(false, 'object')).toBe(keyOf(false, 'array'));
  expect(keyOf(true, 'object')).not.toBe(keyOf(true, 'array'));
  expect(keyOf(true, 'object')).not.toBe(keyOf(false, 'object'));
});

test('a scope evicts only its own least recently used entries', () => {
  const { add, has } = cacheOf();
  add(OTHER, 'other');
  for (let i = 0; i < 8; i++) add(ONE, `tool-${i}`);
  expect(has(ONE, 'tool-0')).toBe(true);
  for (let i = 8; i < 100; i++) add(ONE, `tool-${i}`);
  expect([has(OTHER, 'other'), has(ONE, 'tool-0'), has(ONE, 'tool-91'), has(ONE, 'tool-92'), has(ONE, 'tool-99')]).toEqual([
    true,
    false,
    false,
    true,
    true,
  ]);
});

test('many scopes evict the least recently used entry of all', () => {
  const { add, has } = cacheOf();
  for (let i = 0; i < 32; i++) add(`scope-${i}`, 'tool');
  expect(has('scope-0', 'tool')).toBe(true);
  add(ONE, 'tool');
  expect([has('scope-0', 'tool'), has('scope-1', 'tool'), has(ONE, 'tool')]).toEqual([true, false, true]);
});

test('drops entries that were not used for ten minutes, and leaves no timer', () => {
  const { add, has } = cacheOf();
  add(ONE, 'paint');
  vi.advanceTimersByTime(9 * 60_000);
  expect(has(ONE, 'paint')).toBe(true);
  vi.advanceTimersByTime(9 * 60_000);
  expect(has(ONE, 'paint')).toBe(true);
  vi.advanceTimersByTime(12 * 60_000);
  expect(has(ONE, 'paint')).toBe(false);
  expect(timerCount()).toBe(0);
});

test('clear drops all entries and the timer', () => {
  const { cache, add, has } = cacheOf();
  add(ONE, 'paint');
  expect(timerCount()).toBe(1);
  cache.clear();
  expect(has(ONE, 'paint')).toBe(false);
  expect(timerCount()).toBe(0);
});
