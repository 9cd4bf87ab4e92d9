/** Maximum of unsent bytes per provider, without closing the connection of a slow one. Also the limit of free token counting. */
import { afterEach, describe, expect, it } from 'vitest';
import { CountTokensLimit } from '../../../src/inference/request/count-tokens-limit.js';
import type { ProviderSnapshot } from '../../../src/providers/provider-snapshot.js';
import { type Harness, MODEL, startHarness, until } from '../../support/harness.js';
import type { ScriptedProvider } from '../../support/scripted-provider.js';

let harness: Harness;
afterEach(() => harness.close());

const MiB = 1024 * 1024;
/** A timeout that never fires during a test. */
const LONG_MS = 600_000;
const PATIENT = { acceptMs: LONG_MS, silentMs: LONG_MS, queueMs: LONG_MS, overallMs: LONG_MS, contextMs: LONG_MS };

const snapshotOf = ({ providerId }: ScriptedProvider): ProviderSnapshot | null => harness.app.providers.snapshot(providerId);
const chatOf = (bytes: number, signal?: AbortSignal): Promise<Response> =>
  harness.chat({ messages: [{ role: 'user', content: 'x'.repeat(bytes) }] }, signal === undefined ? {} : { signal });
const gateOf = (provider: ScriptedProvider) => snapshotOf(provider)?.unavailableReason;

describe('requests for a provider that takes them slowly', () => {
  it('wait within a bound, and are answered when the provider reads', async () => {
    harness = await startHarness({ jobTimings: PATIENT });
    const provider = await harness.provider({ slots: 8 });
    provider.socket.pause();
    const answers: Promise<Response>[] = [];
    // Sequentially, because a job only counts after it is sealed.
    while (answers.length < 4) {
      answers.push(chatOf(7 * MiB));
      await until(() => snapshotOf(provider)?.usedSlots === answers.length || gateOf(provider) === 'no_free_slot');
    }
    await until(() => gateOf(provider) === 'no_free_slot');
    // With two such jobs, a third one of maximum size would exceed the bound.
    expect(snapshotOf(provider)?.usedSlots).toBeLessThanOrEqual(3);
    provider.socket.resume();
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect([provider.rejection, gateOf(provider)]).toEqual([undefined, null]);
  });

  it('go to another one meanwhile', async () => {
    harness = await startHarness({ jobTimings: PATIENT });
    const slow = await harness.provider({ slots: 8 });
    slow.socket.pause();
    const waiting = [chatOf(7 * MiB), chatOf(7 * MiB), chatOf(7 * MiB)];
    await until(() => gateOf(slow) === 'no_free_slot');
    const other = await harness.provider({ slots: 8 });
    const answers = await Promise.all([1, 2].map(() => chatOf(MiB)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    expect(other.jobs.size).toBeGreaterThanOrEqual(2);
    slow.socket.resume();
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200, 200]);
  });

  it('are withdrawn unsent when their clients have left', async () => {
    harness = await startHarness({ jobTimings: PATIENT });
    const provider = await harness.provider({ slots: 8 });
    provider.socket.pause();
    const first = chatOf(7 * MiB);
    await until(() => snapshotOf(provider)?.usedSlots === 1);
    const leaving = new AbortController();
    const second = chatOf(7 * MiB, leaving.signal).catch(() => 'left');
    await until(() => snapshotOf(provider)?.usedSlots === 2);
    leaving.abort();
    expect(await second).toBe('left');
    // The slot is free at once: the job was never sent, so the provider has nothing to confirm.
    await until(() => snapshotOf(provider)?.usedSlots === 1);
    provider.socket.resume();
    expect((await first).status).toBe(200);
    expect(provider.jobs.size).toBe(1);
  });

  it('do not delay a small one that comes after them', async () => {
    harness = await startHarness({ jobTimings: PATIENT });
    const sizes: number[] = [];
    const provider = await harness.provider({
      slots: 8,
      onJob: (job) => {
        sizes.push(job.body.length);
        job.answerHonestly();
      },
    });
    provider.socket.pause();
    const large = chatOf(8 * MiB - 1024);
    await until(() => snapshotOf(provider)?.usedSlots === 1);
    const small = harness.chat();
    await until(() => snapshotOf(provider)?.usedSlots === 2);
    provider.socket.resume();
    expect((await Promise.all([large, small])).map(({ status }) => status)).toEqual([200, 200]);
    expect(sizes).toHaveLength(2);
    expect(sizes[0]).toBeLessThan(1024);
  });

  it('end its session when it reads nothing, though it answers pings', async () => {
    harness = await startHarness({ jobTimings: { ...PATIENT, queueMs: 1 }, providerTimings: { pingMs: 20, silenceMs: 800 } });
    const provider = await harness.provider({ slots: 8 });
    provider.socket.pause();
    // The provider reads nothing, but its pings show that it is alive.
    const alive = setInterval(() => provider.socket.ping(), 10);
    const answers = await Promise.all([1, 2, 3].map(() => chatOf(7 * MiB)));
    clearInterval(alive);
    for (const { status } of answers) expect([502, 503]).toContain(status);
    expect(harness.log.some((line) => line.includes('"too_slow"'))).toBe(true);
  });
});

describe('counting tokens', () => {
  const count = (bytes: number): Promise<Response> =>
    harness.post('/v1/messages/count_tokens', { model: MODEL, messages: [{ role: 'user', content: 'x'.repeat(bytes) }] });

  it('is free for the requests that Claude Code sends at once', async () => {
    harness = await startHarness();
    await harness.provider();
    const answers = await Promise.all(Array.from({ length: 15 }, () => count(80_000)));
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 15 }, () => 200));
  });

  it('has a limit of bytes per account, reported in the Messages format', async () => {
    harness = await startHarness({ config: { countTokensBytesPerMinute: 4 * MiB } });
    await harness.provider();
    expect((await count(3 * MiB)).status).toBe(200);
    const refused = await count(3 * MiB);
    expect(refused.status).toBe(429);
    const seconds = Number(refused.headers.get('retry-after'));
    expect(seconds).toBeGreaterThan(0);
    expect(seconds).toBeLessThanOrEqual(60);
    expect(await refused.json()).toMatchObject({ type: 'error', error: { type: 'rate_limit_error' } });
    // Paid requests are not limited, nor are other accounts.
    expect((await harness.chat()).status).toBe(200);
    const other = await harness.customer(0);
    const headers = { 'x-api-key': other.apiKey };
    const body = { model: MODEL, messages: [{ role: 'user', content: 'x'.repeat(3 * MiB) }] };
    expect((await harness.post('/v1/messages/count_tokens', body, headers)).status).toBe(200);
  });
});

it('the limit of counting takes bytes that are known later, and gives all back where they are too many', () => {
  let now = 0;
  const limit = new CountTokensLimit({ bytesPerMinute: 60 * MiB, now: () => now });
  const admitted = (bytes: number) => {
    const admission = limit.admit('a', bytes);
    if (admission.kind === 'refused') throw new Error('the request was refused');
    return admission;
  };
  // A single request may exceed the whole bucket.
  const large = admitted(MiB);
  expect(large.add(100 * MiB)).toBeNull();
  expect(limit.admit('a', 1).kind).toBe('refused');
  large.release();
  now += 10_000;
  const [first, second] = [admitted(MiB), admitted(MiB)];
  expect(first.add(15 * MiB)).toBe(1);
  // 10 MiB have been refilled, and 16 MiB are requested.
  expect(second.add(15 * MiB)).toBe(6);
  now += 6000;
  expect(admitted(MiB).add(15 * MiB)).toBeNull();
});

it('the limit of counting refills with time, and bounds bytes in progress', () => {
  let now = 0;
  const limit = new CountTokensLimit({ bytesPerMinute: 60 * MiB, now: () => now });
  const admit = (bytes: number, account = 'a') => limit.admit(account, bytes);
  const first = admit(8 * MiB);
  const second = admit(8 * MiB);
  expect([first.kind, second.kind, admit(1).kind]).toEqual(['admitted', 'admitted', 'refused']);
  expect(admit(8 * MiB, 'b').kind).toBe('admitted');
  for (const one of [first, second]) if (one.kind === 'admitted') one.release();
  for (let turn = 0; turn < 5; turn++) {
    const one = admit(8 * MiB);
    expect(one.kind).toBe('admitted');
    if (one.kind === 'admitted') {
      one.release();
      one.release();
    }
  }
  // 56 of 60 MiB are used up.
  expect(admit(8 * MiB)).toEqual({ kind: 'refused', retryAfterSeconds: 4 });
  now += 4000;
  expect(admit(8 * MiB).kind).toBe('admitted');
  const small = Array.from({ length: 40 }, () => limit.admit('c', 1).kind);
  expect(small.filter((kind) => kind === 'admitted')).toHaveLength(32);
});
