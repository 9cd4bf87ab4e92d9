/** A hedged attempt after a late one, as the client, both providers and the ledger see it. */
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { costOf } from '../../../src/billing/prices/price.js';
import { HedgeBudget } from '../../../src/inference/attempt/hedging-policy.js';
import { RequestQueue } from '../../../src/inference/queue/request-queue.js';
import { errorOf, type Harness, MODEL, startHarness, until } from '../../support/harness.js';
import { expectSignedPlain, expectSignedStream } from '../../support/inference-calls.js';
import type { ScriptedJob, ScriptedProvider } from '../../support/scripted-provider.js';
import { openAnswer, postSealed, seal } from '../../support/sealed-calls.js';

let harness: Harness;
afterEach(() => harness.close());

const FULL = 100_000_000;
/** The provider that connects first is chosen first. */
const start = (options: Parameters<typeof startHarness>[0] = {}): Promise<Harness> =>
  startHarness({ random: () => 0, ...options, jobTimings: { lateMs: 50, ...options.jobTimings } });
/** Accepts jobs, and leaves everything else to the test. */
const silent = { onJob: (job: ScriptedJob): void => job.accept() };

function jobOf(provider: ScriptedProvider): ScriptedJob {
  return [...provider.jobs.values()][0] as ScriptedJob;
}

const bothRun = (...providers: ScriptedProvider[]): Promise<void> => until(() => providers.every(({ jobs }) => jobs.size === 1));
/** A stream request that two silent providers work on. */
async function startTwoAttempts() {
  harness = await start();
  const [first, second] = [await harness.provider(silent), await harness.provider(silent)];
  const asked = harness.chat({ stream: true });
  await bothRun(first, second);
  return { first, second, asked };
}

const states = async (): Promise<{ provider_id: string; running_jobs: number }[]> =>
  ((await (await harness.get('/admin/v1/providers', harness.adminKey)).json()) as { providers: [] }).providers;
const allFree = (): Promise<void> => until(async () => (await states()).every(({ running_jobs }) => running_jobs === 0));
const line = async (): Promise<Record<string, unknown>> => {
  await until(() => harness.jobLines().length === 1);
  return harness.jobLines()[0] as Record<string, unknown>;
};

describe('when the first content is late', () => {
  it.each([true, false])('an idle provider answers, and the late attempt is cancelled and unpaid (stream: %s)', async (stream) => {
    harness = await start();
    const [late, good] = [await harness.provider({ ...silent, onCancel: () => {} }), await harness.provider()];
    const response = await harness.chat({ stream, max_tokens: 8 });
    expect(response.headers.get('x-provider-id')).toBe(good.providerId);
    if (stream) expect((await expectSignedStream(response)).signed).toContain('here');
    else expect((await expectSignedPlain(response, '/v1/chat/completions')).receipt.provider_id).toBe(good.providerId);
    await until(() => jobOf(late).cancelled.aborted);
    expect(await line()).toMatchObject({ attempts: 2, provider: good.providerId, attempt_outcomes: ['first overtaken', 'hedge answered'] });
    const price = costOf(harness.app.prices.current(MODEL), { promptTokens: 7, completionTokens: 4 });
    await until(async () => (await harness.money()).reserved === 0);
    expect((await harness.money()).balance).toBe(FULL - price);
    // A late answer, although signed, is neither paid nor a fault.
    jobOf(late).push(Buffer.concat(jobOf(late).render(['too late'])), true);
    jobOf(late).complete();
    await allFree();
    expect(await harness.money()).toEqual({ balance: FULL - price, reserved: 0 });
    expect((await harness.money(`provider:${late.providerId}`)).balance).toBe(0);
    expect(harness.app.providers.reputations.summaryOf(late.providerId)).toMatchObject({ state: 'well', recentFailures: 0 });
  });

  it('the first attempt still wins with the first content, and the second is cancelled', async () => {
    const { first, second, asked } = await startTwoAttempts();
    jobOf(first).answerHonestly(['first']);
    const response = await asked;
    expect(response.headers.get('x-provider-id')).toBe(first.providerId);
    expect((await expectSignedStream(response)).signed).toContain('first');
    await until(() => jobOf(second).cancelled.aborted);
    expect(await line()).toMatchObject({ attempt_outcomes: ['hedge overtaken', 'first answered'] });
    expect((await harness.money(`provider:${second.providerId}`)).balance).toBe(0);
  });

  it('two simultaneous answers give one response, paid once', async () => {
    const { first, second, asked } = await startTwoAttempts();
    jobOf(first).answerHonestly(['one']);
    jobOf(second).answerHonestly(['two']);
    const response = await asked;
    const won = response.headers.get('x-provider-id') === first.providerId ? 'one' : 'two';
    const { signed } = await expectSignedStream(response);
    expect([signed.includes('one'), signed.includes('two')]).toEqual([won === 'one', won === 'two']);
    await allFree();
    const earned = await Promise.all([first, second].map(({ providerId }) => harness.money(`provider:${providerId}`)));
    expect(earned.filter(({ balance }) => balance > 0)).toHaveLength(1);
  });

  it('and the first attempt fails, the second continues alone; when that fails too, a third answers', async () => {
    const { first, second, asked } = await startTwoAttempts();
    const third = await harness.provider();
    jobOf(first).fail({ code: 'engine_failed' });
    await until(() => harness.app.providers.reputations.summaryOf(first.providerId).recentFailures === 1);
    expect([jobOf(second).cancelled.aborted, third.jobs.size]).toEqual([false, 0]);
    jobOf(second).fail({ code: 'engine_failed' });
    const response = await asked;
    expect(response.headers.get('x-provider-id')).toBe(third.providerId);
    await expectSignedStream(response);
    expect(await line()).toMatchObject({ attempts: 3, attempt_outcomes: ['first engine_failed', 'hedge engine_failed', 'retry answered'] });
  });

  it('and one provider refuses the request, the other continues; the client sees a refusal by both', async () => {
    const { first, second, asked } = await startTwoAttempts();
    const tooLong = { code: 'context_length_exceeded', limit: 4096, actual: 5000 } as const;
    jobOf(first).fail(tooLong);
    await until(() => harness.app.providers.snapshot(first.providerId)?.usedSlots === 0);
    expect(jobOf(second).cancelled.aborted).toBe(false);
    jobOf(second).fail(tooLong);
    const response = await asked;
    expect([response.status, (await errorOf(response)).code]).toEqual([400, 'context_length_exceeded']);
    expect(await line()).toMatchObject({ attempt_outcomes: ['first context_length_exceeded', 'hedge context_length_exceeded'] });
  });

  it('and the client disconnects, both attempts are cancelled and nothing is paid', async () => {
    harness = await start();
    const [first, second] = [await harness.provider(silent), await harness.provider(silent)];
    const leaving = new AbortController();
    const asked = harness.chat({ stream: true }, { signal: leaving.signal }).catch(() => null);
    await bothRun(first, second);
    leaving.abort();
    await asked;
    await until(() => jobOf(first).cancelled.aborted && jobOf(second).cancelled.aborted);
    await allFree();
    expect(await line()).toMatchObject({ status: 'client_gone', attempt_outcomes: ['first stopped', 'hedge stopped'] });
    expect(await harness.money()).toEqual({ balance: FULL, reserved: 0 });
  });

  it('and the headers can wait no longer, they name one provider, which continues alone', async () => {
    harness = await start({ jobTimings: { commitMs: 2500 } });
    const [first, second] = [await harness.provider(silent), await harness.provider(silent)];
    const response = await harness.chat({ stream: true });
    await bothRun(first, second);
    const named = [first, second].find(({ providerId }) => providerId === response.headers.get('x-provider-id')) as ScriptedProvider;
    const other = named === first ? second : first;
    await until(() => jobOf(other).cancelled.aborted);
    expect(jobOf(named).cancelled.aborted).toBe(false);
    jobOf(named).answerHonestly(['named']);
    expect((await expectSignedStream(response)).signed).toContain('named');
  });

  it('and the coordinator shuts down, both providers are informed', async () => {
    const { first, second, asked } = await startTwoAttempts();
    const closed = harness.app.close(50);
    const response = await asked;
    expect([response.status, (await errorOf(response)).code]).toEqual([503, 'shutting_down']);
    await Promise.all([closed, first.closed, second.closed]);
    harness = await startHarness();
  });
});

describe('no second attempt starts', () => {
  /** Waits beyond the usual start of a second attempt, then ends the first provider's job. No second attempt may have started. */
  async function staysAlone(asked: Promise<Response>, first: ScriptedProvider, other: ScriptedProvider): Promise<void> {
    await until(() => [...first.jobs.values()].some(({ over }) => !over));
    const before = other.jobs.size;
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(other.jobs.size).toBe(before);
    for (const job of first.jobs.values()) if (!job.over) job.answerHonestly();
    expect((await asked).headers.get('x-provider-id')).toBe(first.providerId);
  }

  it('for a client that named its provider', async () => {
    harness = await start();
    const [first, other] = [await harness.provider({ ...silent, serial: 'NAMED' }), await harness.provider({ serial: 'OTHER' })];
    await staysAlone(harness.chat({ provider_serial: 'NAMED', max_tokens: 8 }), first, other);
  });

  it('where hedging is disabled', async () => {
    harness = await start({ config: { hedgePercent: 0 } });
    const [first, other] = [await harness.provider(silent), await harness.provider()];
    await staysAlone(harness.chat({ max_tokens: 8 }), first, other);
  });

  it('on a provider with another job', async () => {
    harness = await start();
    const [first, other] = [await harness.provider({ ...silent, serial: 'FIRST' }), await harness.provider({ ...silent, serial: 'BUSY' })];
    const busy = harness.chat({ provider_serial: 'BUSY' });
    await until(() => other.jobs.size === 1);
    await staysAlone(harness.chat({ max_tokens: 8 }), first, other);
    jobOf(other).answerHonestly();
    expect((await busy).status).toBe(200);
  });

  it('while requests wait for the model; one starts when none waits any more', async () => {
    harness = await start();
    const full = await harness.provider({ ...silent, serial: 'FULL', slots: 1 });
    const running = harness.chat({ provider_serial: 'FULL' });
    await until(() => full.jobs.size === 1);
    const waits = harness.chat({ provider_serial: 'FULL' });
    await until(async () => {
      const admin = (await (await harness.get('/admin/v1/providers', harness.adminKey)).json()) as { waiting_requests: number };
      return admin.waiting_requests === 1;
    });
    const first = await harness.provider({ ...silent, serial: 'FIRST' });
    const free = await harness.provider({ serial: 'FREE' });
    const late = harness.chat({ max_tokens: 8 });
    await until(() => first.jobs.size === 1);
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(free.begunCount).toBe(0);
    jobOf(full).answerHonestly();
    expect((await late).headers.get('x-provider-serial')).toBe('FREE');
    await until(() => full.jobs.size === 2);
    for (const job of full.jobs.values()) if (!job.over) job.answerHonestly();
    expect((await Promise.all([running, waits])).map(({ status }) => status)).toEqual([200, 200]);
  });

  it('on a provider where the attempt cannot start, which leaves the budget for others', async () => {
    harness = await start();
    const placing = vi.spyOn(RequestQueue.prototype, 'placeOnIdleProvider');
    onTestFinished(() => placing.mockRestore());
    const placedCount = (): number => placing.mock.results.filter(({ value }) => value !== null).length;
    const first = await harness.provider({ ...silent, onSealedJob: (job) => job.accept() });
    const plainOnly = await harness.provider();
    for (let request = 1; request <= 2; request++) {
      const sealed = seal([first, plainOnly]);
      const asked = postSealed(harness, sealed.bytes);
      await until(() => placedCount() === 2 * request);
      for (const job of first.sealedJobs.values()) if (!job.isOver) job.answer();
      await openAnswer(sealed, await asked);
    }
    expect((await harness.chat({ max_tokens: 8 })).headers.get('x-provider-id')).toBe(plainOnly.providerId);
  });

  it('beyond the configured share of the placements', () => {
    const budget = new HedgeBudget(5);
    let hedges = 0;
    for (let placement = 0; placement < 1000; placement++) {
      budget.earn();
      if (!budget.canSpend) continue;
      budget.spend();
      hedges++;
    }
    expect(hedges).toBeGreaterThan(45);
    expect(hedges).toBeLessThanOrEqual(53);
    expect(new HedgeBudget(0).canSpend).toBe(false);
  });
});

describe('a silent provider', () => {
  const quick = { config: { hedgePercent: 0 }, jobTimings: { silentMs: 300 } };

  it('is abandoned for another long before its deadline, which counts as a failure', async () => {
    harness = await start(quick);
    const [dead, good] = [await harness.provider(silent), await harness.provider()];
    for (const stream of [true, false]) {
      const response = await harness.chat({ stream, max_tokens: 8 });
      expect([response.status, response.headers.get('x-provider-id')]).toEqual([200, good.providerId]);
      await response.text();
      if (stream) await until(() => jobOf(dead).cancelled.aborted);
    }
    expect(harness.jobLines()[0]).toMatchObject({ attempt_outcomes: ['first timeout_first_content', 'retry answered'] });
    await until(() => harness.app.providers.reputations.summaryOf(dead.providerId).recentFailures >= 1);
  });
});

it('a plain answer that does not verify is generated again by another provider', async () => {
  harness = await start();
  const liar = await harness.provider({
    onJob: (job) => job.answerHonestly(['lie'], { message: (message) => ({ ...message, response_sha256: '0'.repeat(64) }) }),
  });
  const honest = await harness.provider();
  const { receipt } = await expectSignedPlain(await harness.chat(), '/v1/chat/completions');
  expect(receipt.provider_id).toBe(honest.providerId);
  await expect
    .poll(() => harness.app.providers.reputations.summaryOf(liar.providerId))
    .toMatchObject({ state: 'quarantined', reason: 'answers_not_verified' });
  expect((await harness.money(`provider:${liar.providerId}`)).balance).toBe(0);
});
