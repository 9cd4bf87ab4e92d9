/** Another process holds the lock of the database file: reads and streams continue, writes wait, and none is lost. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { utf8 } from '@inference/protocol';
import { afterEach, expect, it } from 'vitest';
import { program } from '../../../../test/support/program.js';
import { createAccount } from '../../src/database/accounts/api-key-repository.js';
import { checkLedger } from '../../src/database/ledger/check-ledger.js';
import { Browser } from '../support/console-client.js';
import { errorOf, type Harness, NO_RATE_LIMITS, startHarness } from '../support/harness.js';
import type { ScriptedJob } from '../support/scripted-provider.js';

/** Longer than any test. */
const NEVER_MS = 600_000;
const EVENTS = 20;

let harness: Harness | null = null;
let holder: ChildProcess | null = null;
afterEach(async () => {
  await release();
  await harness?.close();
  harness = null;
});

async function hold(dataDir: string, work: 'lock' | 'checkpoint' = 'lock'): Promise<void> {
  const file = join(dataDir, 'coordinator', 'coordinator.db');
  holder = fork(await program('apps/coordinator/test/database/lock-holder.ts'), [file, work], { execArgv: [] });
  await once(holder, 'message');
}

async function release(): Promise<void> {
  const child = holder;
  holder = null;
  if (child === null) return;
  child.send('stop');
  await once(child, 'exit');
}

/** Provider script that streams one event per request of the test, and ends on request. */
function paced() {
  let begin: (job: ScriptedJob) => void = () => {};
  const job = new Promise<ScriptedJob>((resolve) => {
    begin = resolve;
  });
  const onJob = (begun: ScriptedJob): void => {
    begun.accept();
    begin(begun);
  };
  return { onJob, job };
}

function pushEvent(job: ScriptedJob, word: string): void {
  job.tokens++;
  job.push(utf8(`data: {"choices":[],"word":"${word}"}\n\n`));
}

it('streams, health checks and reads continue while writes wait, and the writes succeed', async () => {
  const slow = paced();
  let jobs = 0;
  const running = await startHarness({
    databaseBusyMs: NEVER_MS,
    jobTimings: { ledgerMs: NEVER_MS },
    config: { rateLimits: NO_RATE_LIMITS },
  });
  harness = running;
  await running.provider({ onJob: (job) => (jobs++ === 0 ? slow.onJob(job) : job.answerHonestly()) });
  const streaming = await startStream(running, slow.job);
  await hold(running.dataDir);

  let written = 0;
  const account = createAccount(running.app.database, 'someone', Date.now()).finally(() => written++);
  const chat = running.chat().finally(() => written++);
  const deposit = running.customer(500).finally(() => written++);
  for (let event = 0; event < EVENTS; event++) {
    expect((await running.get('/health', null)).status).toBe(200);
    expect((await running.get('/v1/payments/balance')).status).toBe(200);
    await streaming.next();
  }
  expect(written).toBe(0);
  await release();
  expect([(await chat).status, (await running.money((await deposit).accountId)).balance]).toEqual([200, 500]);
  await account;
  expect(await streaming.end()).toContain('se_signature');
  await running.until(async () => (await running.money()).reserved === 0);
  expect((await checkLedger(running.app.database)).problems).toEqual([]);
});

it('writes that wait too long get 503 with Retry-After; only delivered responses are charged, afterwards', async () => {
  const slow = paced();
  let jobs = 0;
  const running = await startHarness({
    databaseBusyMs: 1000,
    // Enough time, even on a busy machine, for the writes before and after the lock.
    jobTimings: { ledgerMs: 3000, settleRetryMs: 20, settleRetryMaxMs: 40 },
    config: { rateLimits: NO_RATE_LIMITS },
  });
  harness = running;
  await running.provider({ onJob: (job) => (jobs++ === 0 ? slow.onJob(job) : job.answerHonestly()) });
  const browser = new Browser(running.url);
  await browser.signUp('owner@example.com');
  const before = (await running.money()).balance;
  const streaming = await startStream(running, slow.job);
  await streaming.next();
  await hold(running.dataDir);

  const refusals = [
    [await running.chat(), 'billing_unavailable'],
    [await browser.post('/console/v1/keys', { name: 'key' }), 'overloaded'],
    [await new Browser(running.url).signUp('other@example.com'), 'overloaded'],
  ] as const;
  for (const [answer, code] of refusals) {
    expect([answer.status, (await errorOf(answer)).code]).toEqual([503, code]);
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
  }
  // Verified and delivered, and not yet booked.
  expect(await streaming.end()).toContain('se_signature');
  expect(jobs).toBe(1);
  await release();

  await running.until(async () => (await running.money()).reserved === 0);
  const { usage } = (await (await running.get('/v1/payments/usage')).json()) as { usage: { cost_micro_usd: number }[] };
  expect(usage).toHaveLength(1);
  expect((await running.money()).balance).toBe(before - (usage[0]?.cost_micro_usd ?? 0));
  expect(usage[0]?.cost_micro_usd).toBeGreaterThan(0);
  expect((await browser.post('/console/v1/keys', { name: 'key' })).status).toBe(201);
  expect((await running.chat()).status).toBe(200);
  expect((await checkLedger(running.app.database)).problems).toEqual([]);
});

it('reads and writes succeed while another process checkpoints repeatedly', async () => {
  const running = await startHarness({
    databaseBusyMs: NEVER_MS,
    jobTimings: { ledgerMs: NEVER_MS },
    config: { rateLimits: NO_RATE_LIMITS },
  });
  harness = running;
  await running.provider();
  await hold(running.dataDir, 'checkpoint');
  for (let round = 0; round < EVENTS; round++) {
    const answers = await Promise.all([running.chat(), running.get('/v1/payments/balance'), running.get('/v1/payments/usage')]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    await Promise.all(answers.map((answer) => answer.text()));
  }
  await release();
  await running.until(async () => (await running.money()).reserved === 0);
  const { usage } = (await (await running.get('/v1/payments/usage')).json()) as { usage: object[] };
  expect(usage).toHaveLength(EVENTS);
  expect((await checkLedger(running.app.database)).problems).toEqual([]);
});

/** Stream whose events the test releases one by one. */
async function startStream(running: Harness, job: Promise<ScriptedJob>) {
  const answer = running.chat({ stream: true });
  const machine = await job;
  pushEvent(machine, 'first');
  const reader = (await answer).body?.getReader();
  if (reader === undefined) throw new Error('the stream has no body');
  const decoder = new TextDecoder();
  let text = '';
  const until = async (part: string): Promise<void> => {
    while (!text.includes(part)) {
      const { value, done } = await reader.read();
      if (done) throw new Error(`the stream ended without ${part}`);
      text += decoder.decode(value, { stream: true });
    }
  };
  let events = 0;
  return {
    async next(): Promise<void> {
      const word = `event-${events++}`;
      pushEvent(machine, word);
      await until(word);
    },
    /** Ends the response and resolves to its whole text. */
    async end(): Promise<string> {
      machine.push(new Uint8Array(), true);
      machine.complete();
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return text;
        text += decoder.decode(value, { stream: true });
      }
    },
  };
}
