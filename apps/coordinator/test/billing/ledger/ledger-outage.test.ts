/** Database failures at each ledger step of a job: no job runs unpaid, no request fails, and the step is repeated later. */
import { afterEach, describe, expect, it } from 'vitest';
import { costOf } from '../../../src/billing/prices/price.js';
import { errorOf, type Harness, ledgerWith, MODEL, startHarness, until } from '../../support/harness.js';

let harness: Harness;
afterEach(() => harness.close());

const price = (promptTokens: number, completionTokens: number): number =>
  costOf(harness.app.prices.current(MODEL), { promptTokens, completionTokens });

describe('the ledger fails', () => {
  const quick = { ledgerMs: 700, settleRetryMs: 20, settleRetryMaxMs: 40 };

  it('before the job: nothing runs, and the client may retry', async () => {
    let down = true;
    const failing = () => Promise.reject(new Error('the database is down'));
    harness = await startHarness({
      jobTimings: quick,
      wrapLedger: (ledger) => ledgerWith(ledger, { reserve: (reservation) => (down ? failing() : ledger.reserve(reservation)) }),
    });
    const provider = await harness.provider();
    const response = await harness.chat();
    expect([response.status, (await errorOf(response)).code, response.headers.get('retry-after')]).toEqual([
      503,
      'billing_unavailable',
      '5',
    ]);
    expect(provider.begunCount).toBe(0);
    down = false;
    expect((await harness.chat()).status).toBe(200);
  });

  it('and answers too late before the job: the late reservation is released', async () => {
    const released: boolean[] = [];
    let goOn: () => void = () => {};
    const answered = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    harness = await startHarness({
      jobTimings: quick,
      wrapLedger: (ledger) =>
        ledgerWith(ledger, {
          reserve: async (reservation) => {
            await answered;
            return ledger.reserve(reservation);
          },
          release: async (jobId, at) => {
            const outcome = await ledger.release(jobId, at);
            released.push(outcome);
            return outcome;
          },
        }),
    });
    await harness.provider();
    expect((await harness.chat()).status).toBe(503);
    goOn();
    await until(() => released.length === 1);
    expect(released).toEqual([true]);
    expect(await harness.money()).toEqual({ balance: 100_000_000, reserved: 0 });
  });

  for (const stream of [false, true]) {
    it(`after the job: the client gets its verified answer, and is charged once the ledger is back${stream ? ', streamed' : ''}`, async () => {
      let down = true;
      harness = await startHarness({
        jobTimings: quick,
        wrapLedger: (ledger) =>
          ledgerWith(ledger, {
            settle: (settlement) => (down ? Promise.reject(new Error('the database is down')) : ledger.settle(settlement)),
          }),
      });
      await harness.provider();
      const before = await harness.money();
      const response = await harness.chat({ stream });
      const text = await response.text();
      expect(response.status).toBe(200);
      expect(stream ? text : response.headers.get('x-se-signature')).toMatch(/se_signature|^[A-Za-z0-9+/=]+$/);
      expect(response.headers.get('x-inference-cost-micro-usd')).toBeNull();
      expect((await harness.money()).balance).toBe(before.balance);
      down = false;
      await until(async () => (await harness.money()).reserved === 0);
      expect((await harness.money()).balance).toBe(before.balance - price(7, 4));
      expect(harness.jobLines()[0]).toMatchObject({ status: 'delivered', charge: 'pending', cost_micro_usd: null });
    });
  }

  it('for good: the log names the delivered usage, and the next start releases the reservation', async () => {
    harness = await startHarness({
      jobTimings: { ...quick, settleGiveUpMs: 100 },
      wrapLedger: (ledger) => ledgerWith(ledger, { settle: () => Promise.reject(new Error('the database is down')) }),
    });
    const provider = await harness.provider();
    expect((await harness.chat()).status).toBe(200);
    await until(() => harness.log.some((line) => line.includes('"unsettled"')));
    const line = harness.log.map((text) => JSON.parse(text)).find((entry) => entry.problem === 'unsettled');
    expect(line).toMatchObject({
      level: 50,
      provider: provider.providerId,
      prompt_tokens: 7,
      completion_tokens: 4,
      reason: 'ledger_unavailable',
    });
    const { dataDir } = harness;
    await harness.app.close(50);
    harness = await startHarness({ config: { dataDir } });
    expect(await harness.money()).toEqual({ balance: 100_000_000, reserved: 0 });
  });

  it('twice with the same job settles it once', async () => {
    harness = await startHarness({
      jobTimings: { settleRetryMs: 20 },
      wrapLedger: (ledger) =>
        ledgerWith(ledger, {
          settle: async (settlement) => {
            await ledger.settle(settlement);
            // The connection breaks after the commit, so the first outcome is lost.
            if (lost++ === 0) throw new Error('connection lost');
            return ledger.settle(settlement);
          },
        }),
    });
    let lost = 0;
    await harness.provider();
    const before = await harness.money();
    expect((await harness.chat()).status).toBe(200);
    expect(await harness.money()).toEqual({ balance: before.balance - price(7, 4), reserved: 0 });
    expect(lost).toBe(2);
  });
});
