/** When attempts begin, are abandoned and win, in virtual time. The providers are scripted; the sealing is real. */
import { decodeFrame, INITIAL_CREDIT_BYTES, type JobContext, type JobMessage, type RequestFrames } from '@inference/protocol';
import { encapsulate, generateSealingKeyPair, keyIdOf, RequestOpener, sha256Hex } from '@inference/protocol/crypto';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { AttemptPlan } from '../../../src/inference/attempt/attempt.js';
import { type EndedAttempt, HedgedRequest } from '../../../src/inference/attempt/hedged-request.js';
import { LatencyTracker } from '../../../src/inference/attempt/hedging-policy.js';
import type { Delivery } from '../../../src/inference/delivery/delivery.js';
import { JOB_TIMINGS } from '../../../src/inference/job-timings.js';
import { outcomePolicy } from '../../../src/inference/settlement/outcome-policy.js';
import type { JobHandle, JobSink, ProviderConnection } from '../../../src/providers/provider-connection.js';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());

const BODY = Buffer.from('{}');
const key = generateSealingKeyPair();

/** Provider side of one attempt. */
class Script {
  readonly provider: ProviderConnection;
  sink: JobSink | null = null;
  cancelled = false;
  isSent = true;
  #seal: ((text: string, final: boolean) => Uint8Array) | null = null;

  constructor(readonly name: string) {
    this.provider = { name } as unknown as ProviderConnection;
  }

  plan(role: AttemptPlan['role'], stream = true): AttemptPlan {
    const context = {
      v: 1,
      job_id: '7f2c8a4e-0b1d-4c3e-9f5a-6b7c8d9e0f10',
      provider_id: '0'.repeat(32),
      key_id: keyIdOf(key.publicKey),
      endpoint: '/v1/chat/completions',
      model: 'm',
      stream,
      max_tokens: 8,
      overrides: {},
      response_id: 'r',
      created: 0,
      request_sha256: sha256Hex(BODY),
      issued_at: 0,
      expires_at: 1,
    } as JobContext;
    const estimate = { firstTokenMs: 500, completionMs: 10_000, costMs: 0 };
    const latencyTracker = new LatencyTracker(JOB_TIMINGS);
    return {
      slot: { provider: this.provider, release: () => {}, start: this.#start.bind(this) },
      context,
      encapsulate: () => encapsulate(key.publicKey),
      estimate,
      terminalEvents: [],
      bodyMember: null,
      tokenMs: 20,
      fetchedImages: [],
      maxImageTokens: 0,
      otherJobCount: 0,
      role,
      route: { model: 'm', fallbackReason: null, preferences: null },
      lateAfterMs: latencyTracker.lateAfterMs('m', true, estimate),
      silentAfterMs: latencyTracker.silentAfterMs(estimate),
    };
  }

  #start(message: JobMessage, frames: RequestFrames, sink: JobSink): JobHandle {
    const opener = new RequestOpener(message.context, Buffer.from(message.enc, 'base64'), key, message.request_bytes);
    for (const frame of frames) opener.accept(decodeFrame(frame));
    const sealer = opener.responseSealer();
    this.#seal = (text, final) => sealer.seal(Buffer.from(text), final);
    this.sink = sink;
    const cancel = (): void => {
      this.cancelled = true;
    };
    return { isSent: () => this.isSent, grant: () => {}, recall: () => {}, cancel };
  }

  says(text: string, final = false): void {
    if (this.#seal !== null) this.sink?.frame(decodeFrame(this.#seal(text, final)));
  }
}

class Client implements Delivery {
  isCommitted = false;
  readonly isStalled = false;
  readonly delivered = 0;
  named: ProviderConnection | null = null;
  text = '';
  begin(provider: ProviderConnection): void {
    this.named = provider;
  }
  commit(): void {
    this.isCommitted = true;
  }
  push(bytes: Uint8Array): boolean {
    this.isCommitted = true;
    this.text += Buffer.from(bytes).toString();
    return true;
  }
  withdraw(): void {}
  deliver(): void {}
  fail(): void {}
}

interface Choices {
  /** Plan of a second attempt; null: no provider is idle. */
  readonly second: () => AttemptPlan | null;
  readonly couldMove: () => boolean;
}

/** Reacts to the decisions of a hedged request as `AttemptRunner` does. */
async function follow(hedged: HedgedRequest, { second, couldMove }: Choices, ended: [string, string][], finishes: EndedAttempt[]) {
  for (;;) {
    const decision = await hedged.next();
    if (decision.kind === 'ended') ended.push([decision.plan.role, decision.outcome.kind]);
    else if (decision.kind === 'decided') {
      finishes.push(decision);
      return;
    } else if (decision.silent !== null && couldMove()) hedged.abandon(decision.silent);
    else if (decision.isLate) {
      const plan = second();
      if (plan !== null) hedged.start(plan);
    }
  }
}

/** A hedged request on two scripted providers. The second attempt may begin when `second` returns its plan. */
function startHedged(changes: Partial<Choices> = {}) {
  const [first, second, client] = [new Script('first'), new Script('second'), new Client()];
  const ended: [string, string][] = [];
  const finishes: EndedAttempt[] = [];
  const hedged = new HedgedRequest(client, BODY, JOB_TIMINGS);
  hedged.start(first.plan('first'));
  void follow(hedged, { second: () => second.plan('hedge'), couldMove: () => false, ...changes }, ended, finishes);
  return { first, second, client, ended, finishes, hedged };
}

const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

it('a second attempt starts when the first is late, and is retried when no provider was free', async () => {
  let free = false;
  const hedge = new Script('hedge');
  const { first, client } = startHedged({ second: () => (free ? hedge.plan('hedge') : null) });
  first.sink?.accepted();
  await pass(999);
  expect(hedge.sink).toBeNull();
  await pass(2000);
  free = true;
  await pass(1001);
  expect(hedge.sink).not.toBeNull();
  expect([client.named, client.isCommitted]).toEqual([first.provider, false]);
});

it('no byte is written before first content; then the other attempt is cancelled in the same turn and writes nothing', async () => {
  const { first, second, client, ended, finishes } = startHedged();
  first.sink?.accepted();
  await pass(1100);
  second.sink?.accepted();
  expect(client.text).toBe('');
  second.says('data: {"text":"second');
  expect([client.text, client.named, first.cancelled]).toEqual(['data: {"text":"second', second.provider, true]);
  first.says('data: {"text":"first');
  second.says(' goes on');
  await pass(0);
  expect(client.text).toBe('data: {"text":"second goes on');
  expect(ended).toEqual([['first', 'overtaken']]);
  expect(finishes).toEqual([]);
});

it('a silent provider is abandoned only for another; progress messages keep the attempt alive', async () => {
  let other = false;
  const { first, finishes } = startHedged({ second: () => null, couldMove: () => other });
  first.sink?.accepted();
  await pass(9000);
  other = true;
  first.sink?.progressed();
  for (let seconds = 0; seconds < 60; seconds += 3) {
    await pass(3000);
    first.sink?.progressed();
  }
  expect([first.cancelled, finishes.length]).toEqual([false, 0]);
});

it('a provider is abandoned after eight seconds of silence when another is free', async () => {
  const { first, finishes } = startHedged({ second: () => null, couldMove: () => true });
  first.sink?.accepted();
  await pass(7999);
  expect(first.cancelled).toBe(false);
  await pass(2);
  expect(first.cancelled).toBe(true);
  expect(finishes[0]?.outcome).toEqual({ kind: 'timeout', phase: 'first_content' });
});

it('a provider that reads its request in parts is not silent, and the acceptance timeout restarts with each part', async () => {
  const { first, finishes } = startHedged({ second: () => null, couldMove: () => true });
  for (let parts = 0; parts < 10; parts++) {
    await pass(7000);
    first.sink?.sending();
  }
  expect([first.cancelled, finishes.length]).toEqual([false, 0]);
  await pass(JOB_TIMINGS.silentMs + 1);
  expect(finishes[0]?.outcome).toEqual({ kind: 'timeout', phase: 'acceptance' });
});

it('an attempt whose request waits behind others ends as unsent, not as a timeout', async () => {
  const { first, finishes } = startHedged({ second: () => null, couldMove: () => false });
  first.isSent = false;
  for (let parts = 0; parts < 10 && !first.cancelled; parts++) {
    await pass(7000);
    first.sink?.sending();
  }
  expect(finishes.map(({ outcome }) => outcome)).toEqual([{ kind: 'unsent' }]);
  expect(outcomePolicy({ kind: 'unsent' })).toMatchObject({ retry: true, blame: 'none' });
});

it('of two silent attempts the first is abandoned, and the second continues under its own deadlines', async () => {
  const { first, second, client, ended, finishes } = startHedged();
  first.sink?.accepted();
  await pass(1100);
  second.sink?.accepted();
  await pass(7000);
  expect([first.cancelled, second.cancelled, client.named]).toEqual([true, false, second.provider]);
  expect(ended).toEqual([['first', 'timeout']]);
  second.says('data: {"text":"content');
  expect(client.text).toBe('data: {"text":"content');
  expect(finishes).toEqual([]);
});

it('headers that can wait no longer name the most recently active provider', async () => {
  const { first, second, client, ended } = startHedged();
  first.sink?.accepted();
  await pass(1100);
  second.sink?.accepted();
  for (let seconds = 0; seconds < 9; seconds += 3) {
    await pass(3000);
    second.sink?.progressed();
    await pass(1);
    first.sink?.progressed();
  }
  expect(client.isCommitted).toBe(false);
  await pass(1000);
  expect([client.isCommitted, client.named, second.cancelled]).toEqual([true, first.provider, true]);
  expect(ended).toEqual([['hedge', 'overtaken']]);
  await pass(30_000);
  expect(first.cancelled).toBe(false);
});

/** A hedged request whose first attempt has begun to answer. */
function startAnswer(changes: Partial<Choices> = {}) {
  const hedged = startHedged({ second: () => null, ...changes });
  hedged.first.sink?.accepted();
  hedged.first.says('data: {"text":"');
  return hedged;
}

it('a trickling provider is abandoned when its stall budget is exhausted, however often it sends a byte', async () => {
  const { first, finishes, client } = startAnswer();
  let minutes = 0;
  for (; minutes < 30 && !first.cancelled; minutes += 0.5) {
    await pass(30_000);
    first.says('.');
  }
  expect(minutes).toBeLessThan(3);
  await pass(0);
  expect(finishes.map(({ outcome }) => outcome)).toEqual([{ kind: 'timeout', phase: 'progress' }]);
  expect(client.text.startsWith('data: {"text":".')).toBe(true);
});

it('a trickling provider that reports progress is abandoned later', async () => {
  const { first, finishes } = startAnswer();
  let minutes = 0;
  for (; minutes < 600 && !first.cancelled; minutes += 0.5) {
    await pass(30_000);
    first.sink?.progressed();
    if (minutes % 10 === 0) first.says('.');
  }
  // Eight tokens justify no more time than the minimum reserve.
  expect(minutes).toBeLessThan(13);
  await pass(0);
  expect(finishes.map(({ outcome }) => outcome)).toEqual([{ kind: 'timeout', phase: 'progress' }]);
});

it('a provider that takes ten seconds per token is slow and continues', async () => {
  const { first, finishes } = startAnswer();
  for (let tokens = 0; tokens < 60; tokens++) {
    await pass(10_000);
    first.says('x'.repeat(160));
  }
  expect([first.cancelled, finishes.length]).toEqual([false, 0]);
});

it('a provider without credit is not timed out before its client', async () => {
  const grants: ((bytes: number) => void)[] = [];
  const client = new Client();
  client.begin = (_provider: ProviderConnection, grant?: (bytes: number) => void) => {
    if (grant !== undefined) grants.push(grant);
  };
  const late = new Script('late');
  const hedged = new HedgedRequest(client, BODY, { ...JOB_TIMINGS, betweenFramesMs: 3_600_000 });
  hedged.start({ ...late.plan('first'), lateAfterMs: 3_600_000, silentAfterMs: 3_600_000 });
  late.sink?.accepted();
  for (let sent = 0; sent < INITIAL_CREDIT_BYTES; sent += 32_768) late.says((sent === 0 ? 'data: {"text":"' : '').padEnd(32_768, 'x'));
  // The client reads nothing for longer than a provider would be given.
  await pass(40 * 60_000);
  for (const grant of grants) grant(INITIAL_CREDIT_BYTES);
  late.says('goes on');
  expect([late.cancelled, client.text.endsWith('goes on')]).toEqual([false, true]);
});

it('the late threshold follows the measured latency of the model', () => {
  const latencyTracker = new LatencyTracker(JOB_TIMINGS);
  const estimate = { firstTokenMs: 1000, completionMs: 5000, costMs: 0 };
  expect(latencyTracker.lateAfterMs('m', true, estimate)).toBe(2000);
  // 1 in 10 takes twenty times the estimate.
  for (let job = 0; job < 1000; job++) latencyTracker.observe('m', true, estimate, job % 10 === 0 ? 20_000 : 1000);
  const late = latencyTracker.lateAfterMs('m', true, estimate);
  expect(late).toBeGreaterThan(15_000);
  expect(late).toBeLessThan(40_000);
  expect(latencyTracker.lateAfterMs('other', true, estimate)).toBe(2000);
  expect(latencyTracker.lateAfterMs('m', false, estimate)).toBe(10_000);
  for (let job = 0; job < 1000; job++) latencyTracker.observe('m', true, estimate, 500);
  expect(latencyTracker.lateAfterMs('m', true, estimate)).toBe(2000);
});
