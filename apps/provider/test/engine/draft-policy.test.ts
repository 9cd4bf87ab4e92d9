/** `DraftPolicy` with virtual costs: what drafts gain on texts that repeat, and what they lose on other texts. */
import { describe, expect, test } from 'vitest';
import { DraftCost, DraftPolicy, MAX_DRAFT } from '../../src/engine/process/decoding/draft-policy.js';

const ROUND_MS = 10;

/** Rounds that a drafted token takes, by the length of the draft. */
type RoundsPerToken = (length: number) => number;

/** Measured: an AMD EPYC computes a single row of Q8_0 four times as fast as two rows. */
const SLOW_ROWS: ReadonlyMap<number, number> = new Map([
  [1, 3.03],
  [3, 1.56],
  [7, 0.87],
  [11, 0.7],
  [15, 0.52],
  [19, 0.55],
  [23, 0.55],
]);

const MACHINES: readonly (readonly [name: string, roundsPerToken: RoundsPerToken])[] = [
  ['the demo model', (length) => (length === 1 ? 0.27 : 0.39 + 0.005 * length)],
  ['sixty million parameters, computed in tiles of four rows', (length) => (4 * Math.ceil((length + 1) / 4) * 0.44 - 0.3) / length],
  ['a GPU', () => 0.05],
  ['a processor with a slow kernel for several rows', (length) => SLOW_ROWS.get(length) ?? 1],
  ['a machine on which drafts never pay', () => 1],
];
/** On the others, a copy gains. With slow rows only long drafts would pay, which cost more than the allowance. */
const WITHOUT_GAIN = /never pay|slow kernel/;

interface Stream {
  readonly cost: DraftCost;
  /** Whether the prediction of the token at an index comes true. */
  readonly isHit: (index: number) => boolean;
  readonly tokens: number;
}

/** Generates a stream. Returns its time in rounds, and the rounds with a draft. */
function run(roundsPerToken: RoundsPerToken, { cost, isHit, tokens }: Stream): { rounds: number; drafts: number } {
  const policy = new DraftPolicy(cost);
  let rounds = 0;
  let drafts = 0;
  let matched = 3;
  const observe = (index: number) => {
    policy.observe(matched, isHit(index));
    matched = isHit(index) ? Math.min(MAX_DRAFT, matched + 1) : 3;
    return isHit(index);
  };
  for (let index = 0; index < tokens; ) {
    const length = policy.draftLength(matched, tokens - index - 1);
    let accepted = 0;
    while (observe(index + accepted) && accepted < length) accepted++;
    index += 1 + accepted;
    const took = 1 + (length === 0 ? 0 : length * roundsPerToken(length));
    rounds += took;
    if (length === 0) cost.addRound(took * ROUND_MS);
    else {
      policy.addVerified(length, accepted, took * ROUND_MS);
      drafts += 1;
    }
  }
  return { rounds, drafts };
}

describe.each(MACHINES)('on %s', (name, roundsPerToken) => {
  test('a stream that never repeats loses less than 3 % of its time', () => {
    const cost = new DraftCost();
    for (const tokens of [70, 5000]) expect(run(roundsPerToken, { cost, isHit: () => false, tokens }).rounds / tokens).toBeLessThan(1.03);
  });

  test('a stream that repeats now and then loses less than 3 % of its time', () => {
    const cost = new DraftCost();
    // Every third prediction comes true, never two in a row.
    expect(run(roundsPerToken, { cost, isHit: (index) => index % 3 === 0, tokens: 1000 }).rounds / 1000).toBeLessThan(1.03);
  });

  test('a stream that copies is faster where drafts pay', () => {
    const cost = new DraftCost();
    run(roundsPerToken, { cost, isHit: () => true, tokens: 256 });
    const { rounds } = run(roundsPerToken, { cost, isHit: () => true, tokens: 256 });
    expect(256 / rounds).toBeGreaterThan(WITHOUT_GAIN.test(name) ? 0.97 : 1.6);
  });
});

test('a stream that begins to copy is drafted, without a draft before', () => {
  const cost = new DraftCost();
  const isHit = (index: number) => index >= 500;
  expect(run(() => 0.4, { cost, isHit, tokens: 500 }).drafts).toBe(0);
  expect(run(() => 0.4, { cost, isHit, tokens: 1000 }).rounds).toBeLessThan(500 + 500 / 1.6);
});

test('the cost of a draft that was slow is forgotten, so that drafts are tried again', () => {
  const cost = new DraftCost();
  for (let draft = 0; draft < 50; draft++) {
    cost.addRound(ROUND_MS);
    for (const length of [1, 3, 7, 11, 15, 19, 23]) cost.addDraft(length, ROUND_MS * (1 + length));
  }
  expect(cost.expectedCost(7)).toBeGreaterThan(6.5);
  for (let round = 0; round < 500; round++) cost.addRound(ROUND_MS);
  expect(cost.expectedCost(7)).toBeLessThan(3.6);
});

test('one slow batch, as on a busy machine, hardly changes the expected cost', () => {
  const cost = new DraftCost();
  for (let round = 0; round < 20; round++) cost.addRound(ROUND_MS);
  for (let draft = 0; draft < 20; draft++) cost.addDraft(7, ROUND_MS * 1.7);
  cost.addRound(100 * ROUND_MS);
  cost.addDraft(7, 100 * ROUND_MS);
  expect(cost.expectedCost(7)).toBeCloseTo(0.7, 0);
});

test('slow first rounds of a context do not make drafts look cheap', () => {
  const cost = new DraftCost();
  for (const ms of [20 * ROUND_MS, ROUND_MS]) cost.addRound(ms);
  cost.addDraft(7, ROUND_MS * 4.5);
  expect(cost.expectedCost(7)).toBeCloseTo(3.5);
});
