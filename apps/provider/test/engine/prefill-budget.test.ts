import { expect, it } from 'vitest';
import { PrefillBudget } from '../../src/engine/process/decoding/prefill-budget.js';

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

it('after a slice that took longer than its round, no prompt is read until the rounds have paid for it', () => {
  const budget = new PrefillBudget();
  budget.addDecode(30);
  budget.charge(25);
  expect(budget.isExhausted).toBe(false);
  budget.endRound();
  budget.charge(100);
  const rounds: boolean[] = [];
  for (let round = 0; round < 5; round++) {
    budget.endRound();
    rounds.push(budget.isExhausted);
  }
  expect(rounds).toEqual([true, true, false, false, false]);
});

it('a slice interrupted by a suspended machine does not stop prompts for long, and no debt outlives the running streams', () => {
  const budget = new PrefillBudget();
  budget.addDecode(50);
  budget.charge(3_600_000);
  budget.endRound();
  for (let round = 0; round < 20; round++) budget.endRound();
  expect(budget.isExhausted).toBe(false);
  budget.charge(500);
  budget.clear();
  expect(budget.isExhausted).toBe(false);
});
