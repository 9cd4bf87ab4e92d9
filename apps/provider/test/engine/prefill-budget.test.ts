import { expect, it } from 'vitest';
import { MIN_SLICE, PrefillBudget } from '../../src/engine/process/decoding/prefill-budget.js';

it.each([0.5, 3, 10, 15, 20, 30, 80, 400])('a round whose decoding takes %d ms lasts at most twice as long, or 30 ms', (decodeMs) => {
  const budget = new PrefillBudget();
  budget.addDecode(decodeMs);
  expect(decodeMs + budget.roundMs).toBeLessThanOrEqual(Math.max(30, 2 * decodeMs));
  expect(budget.roundMs).toBeGreaterThanOrEqual(15);
  expect(budget.roundMs).toBeLessThanOrEqual(100);
});

it('the usual decoding time follows new measurements slowly', () => {
  const budget = new PrefillBudget();
  for (let round = 0; round < 10; round++) budget.addDecode(4);
  budget.addDecode(14);
  expect(budget.roundMs).toBeCloseTo(24);
  for (let round = 0; round < 50; round++) budget.addDecode(25);
  expect(budget.roundMs).toBeCloseTo(25, 2);
});

it('slices fit into the time by the speed of the last slice that shows it', () => {
  const budget = new PrefillBudget();
  expect(budget.tokensIn(30)).toBe(0);
  expect(budget.hasRoomIn(1)).toBe(true);
  budget.addSlice(100, 50);
  expect(budget.tokensIn(30)).toBe(60);
  budget.addSlice(MIN_SLICE - 1, 90);
  expect(budget.tokensIn(30)).toBe(60);
  expect([budget.hasRoomIn(8), budget.hasRoomIn(7.9), budget.hasRoomIn(0), budget.hasRoomIn(-1)]).toEqual([true, false, false, false]);
});

it('time beyond that of a round is paid back by later rounds, or forgotten once nothing generates', () => {
  const budget = new PrefillBudget();
  budget.addDecode(30);
  budget.overdraw(75);
  expect(budget.isOverdrawn).toBe(true);
  budget.endRound();
  expect(budget.isOverdrawn).toBe(true);
  budget.endRound();
  expect(budget.isOverdrawn).toBe(false);
  budget.overdraw(1000);
  budget.clear();
  expect(budget.isOverdrawn).toBe(false);
});
