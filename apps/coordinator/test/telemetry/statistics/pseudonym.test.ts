import { createHash, createHmac, randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { pseudonyms } from '../../../src/telemetry/statistics/pseudonym.js';

const SHAPE = /^[a-z]+-[a-z]+-[0-9a-hjkmnp-tv-z]{8}$/;
const SECRET = new Uint8Array(32).fill(7);

describe('pseudonyms', () => {
  it('are friendly, and different for 10,000 accounts', () => {
    const name = pseudonyms(SECRET);
    const names = Array.from({ length: 10_000 }, (_, index) => name(`account-${index}`));
    expect(new Set(names).size).toBe(10_000);
    for (const one of names) expect(one).toMatch(SHAPE);
    // Every word is used, so the digest covers both lists.
    expect(new Set(names.map((one) => one.split('-')[0])).size).toBe(64);
    expect(new Set(names.map((one) => one.split('-')[1])).size).toBe(64);
  });

  it('depend on the secret alone', () => {
    const other = pseudonyms(new Uint8Array(32).fill(8));
    for (let round = 0; round < 100; round++) {
      const account = randomUUID();
      expect(pseudonyms(SECRET)(account)).toBe(pseudonyms(new Uint8Array(SECRET))(account));
      expect(other(account)).not.toBe(pseudonyms(SECRET)(account));
    }
  });

  it('cannot be computed from the account id alone, and show no part of the id', () => {
    const account = randomUUID();
    const name = pseudonyms(SECRET)(account);
    const guesses = [new Uint8Array(0), new Uint8Array(32), Buffer.from('leaderboard'), createHash('sha256').update(account).digest()];
    for (const guess of guesses) expect(pseudonyms(guess)(account)).not.toBe(name);
    const digits = name.slice(-8);
    const hex = [createHash('sha256').update(account).digest('hex'), createHmac('sha256', '').update(account).digest('hex'), account];
    for (const text of hex) expect(text).not.toContain(digits);
  });
});
