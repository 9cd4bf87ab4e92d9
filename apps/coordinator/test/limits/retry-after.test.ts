/** Each `Retry-After` is sufficient: after the wait, the request is admitted. Where the end is known, no second is wasted. */
import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { NetworkPermits } from '../../src/cluster/permits/network-permits.js';
import { RequestQueue, type SlotRequest } from '../../src/inference/queue/request-queue.js';
import { CountTokensLimit } from '../../src/inference/request/count-tokens-limit.js';
import { FreeRefusals, MAX_FREE_REFUSALS } from '../../src/inference/request/free-refusals.js';
import type { ProviderRegistry } from '../../src/providers/provider-registry.js';
import { AttemptLimit } from '../../src/routes/plugins/attempt-limit.js';
import { type Harness, MODEL, startHarness } from '../support/harness.js';
import type { ScriptedJob } from '../support/scripted-provider.js';

const seed = { seed: 7 };

it('of free token counting admits the request after the wait, and not a second earlier', () => {
  const bytes = fc.integer({ min: 1, max: 5000 });
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 3000 }),
      fc.array(fc.tuple(bytes, fc.integer({ min: 0, max: 9000 })), { maxLength: 20 }),
      (perMinute, sent) => {
        let now = 0;
        const limit = new CountTokensLimit({ bytesPerMinute: perMinute, now: () => now });
        const ask = (size: number) => {
          const admission = limit.admit('account', size);
          if (admission.kind === 'admitted') admission.release();
          return admission;
        };
        for (const [size, pauseMs] of sent) {
          now += pauseMs;
          const admission = ask(size);
          if (admission.kind !== 'refused') continue;
          const { retryAfterSeconds } = admission;
          now += 1000 * (retryAfterSeconds - 1);
          if (retryAfterSeconds > 1) expect(ask(size).kind).toBe('refused');
          now += 1000;
          expect(ask(size).kind).toBe('admitted');
        }
      },
    ),
    seed,
  );
});

it('of free token counting does not count bytes that the network refused', () => {
  let now = 0;
  const limit = new CountTokensLimit({ bytesPerMinute: 100, now: () => now });
  const refused = limit.admit('account', 100);
  if (refused.kind === 'admitted') refused.cancel();
  expect(limit.admit('account', 100).kind).toBe('admitted');
  now += 1;
});

it('of free refusals ends with the hour', () => {
  let now = 5;
  const refusals = new FreeRefusals(() => now);
  for (let count = 0; count < MAX_FREE_REFUSALS; count++) {
    expect(refusals.retryAfterSeconds('key')).toBeNull();
    refusals.count('key', 10);
    now += 1234;
  }
  const seconds = refusals.retryAfterSeconds('key') ?? 0;
  now += 1000 * (seconds - 1);
  expect(refusals.retryAfterSeconds('key')).toBe(1);
  now += 1000;
  expect(refusals.retryAfterSeconds('key')).toBeNull();
});

it('of attempts ends with the window', () => {
  let now = 17;
  const limit = new AttemptLimit({ maxAttempts: 2, windowMs: 61_500, now: () => now });
  expect([limit.count('name'), limit.count('name')]).toEqual([null, null]);
  now += 700;
  const seconds = limit.count('name') ?? 0;
  now += 1000 * (seconds - 1);
  expect(limit.count('name')).toBe(1);
  now += 1000;
  expect(limit.count('name')).toBeNull();
});

it('of limits that a slow home counts is sufficient although the home began its window later', async () => {
  for (const slowMs of [1, 40, 900]) {
    let now = 0;
    let toHomeMs = slowMs;
    const permits = new Map<string, NetworkPermits>();
    for (const self of ['a', 'b']) {
      const request = async (to: string, payload: Uint8Array): Promise<Uint8Array> => {
        now += toHomeMs;
        const answer = permits.get(to)?.answer(self, payload) ?? new Uint8Array();
        now += 1;
        return answer;
      };
      permits.set(self, new NetworkPermits({ self, request, isConnected: () => true, now: () => now }));
    }
    for (const one of permits.values()) one.coordinatorsChanged(['a', 'b']);
    const [near, far] = [...permits.values()].map((one) => one.define('requests', { max: 2, windowMs: 60_000 }));
    for (const key of ['one', 'two', 'three', 'four']) {
      for (const limit of [near, far]) {
        const name = `${key} ${limit === near}`;
        toHomeMs = slowMs;
        while ((await limit?.take(name))?.isAdmitted === true);
        // A later request reaches the key's home coordinator at once.
        toHomeMs = 0;
        now += 5000 - (now % 1000);
        const refused = await limit?.take(name);
        expect(refused?.isAdmitted).toBe(false);
        now += 1000 * Math.ceil((refused?.resetMs ?? 0) / 1000);
        expect((await limit?.take(name))?.isAdmitted).toBe(true);
      }
    }
  }
});

describe('of a queue', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it('lasts until the request gets a slot', async () => {
    vi.useFakeTimers();
    const SERVICE_MS = 10_000;
    let onCapacity: (models: readonly { id: string }[]) => void = () => {};
    let free = 1;
    const registry = {
      placement: {
        choose: () => {
          if (free === 0) return { kind: 'busy' };
          return { kind: 'placed', estimate: { firstTokenMs: 1, completionMs: 1, costMs: 1 }, why: 'cheapest', takeSlot: () => take() };
        },
      },
      models: {
        canLoad: () => false,
        slotCount: () => 1,
        onCapacity: (listener: typeof onCapacity) => {
          onCapacity = listener;
          return () => {};
        },
      },
    } as unknown as ProviderRegistry;
    const queue = new RequestQueue(registry, 256);
    for (let jobs = 0; jobs < 3; jobs++) queue.served('m', SERVICE_MS);
    const take = (): object => {
      free = 0;
      setTimeout(() => {
        free = 1;
        onCapacity([{ id: 'm' }]);
      }, SERVICE_MS);
      return {};
    };
    const place = (accountId: string, waitMs: number) => {
      const request: SlotRequest = {
        model: 'm',
        accountId,
        providerSerial: null,
        exclude: new Set(),
        trustFloor: null,
        work: { promptTokens: 1, completionTokens: 1 },
        promptPrefixes: [],
      };
      return queue.place(request, waitMs, new AbortController().signal);
    };
    // One job runs and forty wait, which takes more than two minutes.
    for (let count = 0; count < 41; count++) void place(`account-${count}`, 3_600_000);
    const refused = await place('late', 30_000);
    if (refused.kind !== 'refused') throw new Error('the queue took the request');
    expect([refused.reason, refused.retryAfterMs]).toEqual(['hopeless', 41 * SERVICE_MS]);
    await vi.advanceTimersByTimeAsync(refused.retryAfterMs ?? 0);
    expect(await place('late', 30_000)).toMatchObject({ kind: 'placed' });
    queue.close();
  });
});

describe('in responses', () => {
  let harness: Harness;
  afterEach(async () => {
    vi.useRealTimers();
    await harness.close();
  });

  const BODIES = {
    '/v1/chat/completions': { messages: [{ role: 'user', content: 'hi' }] },
    '/v1/completions': { prompt: 'hi' },
    '/v1/responses': { input: 'hi' },
    '/v1/messages': { messages: [{ role: 'user', content: 'hi' }], max_tokens: 4 },
  };
  const calls = Object.entries(BODIES).flatMap(([path, body]) =>
    [false, true].map((stream) => [path, { model: MODEL, ...body, stream }] as const),
  );

  it('is the same in every format, also before a stream', async () => {
    harness = await startHarness({ jobTimings: { queueMs: 50 } });
    const jobs: ScriptedJob[] = [];
    await harness.provider({ slots: 1, onJob: (job) => void jobs.push(job) });
    const running = harness.chat();
    await harness.until(() => jobs.length === 1);
    for (const [path, body] of calls) {
      const response = await harness.post(path, body);
      expect([path, response.status, response.headers.get('retry-after')]).toEqual([path, path === '/v1/messages' ? 529 : 503, '5']);
      expect(response.headers.get('content-type')).toContain('application/json');
      await response.text();
    }
    jobs[0]?.answerHonestly();
    await (await running).text();
  });

  it('of a rate limit admits the key after the wait, and not a second earlier', async () => {
    harness = await startHarness({
      config: { rateLimits: { keyPerMinute: 2, addressPerMinute: 0, badKeysPerMinute: 0, authPerMinute: 0, emailPerQuarterHour: 0 } },
    });
    await harness.provider();
    const statusOf = async (path: string, body: object) => {
      const response = await harness.post(path, body);
      await response.text();
      return [response.status, response.headers.get('retry-after')] as const;
    };
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() });
    const [chat, messages] = [calls[0], calls[6]];
    if (chat === undefined || messages === undefined) throw new Error('there are eight calls');
    for (let count = 0; count < 2; count++) expect((await statusOf(...chat))[0]).toBe(200);
    vi.setSystemTime(Date.now() + 12_345);
    const [status, seconds] = await statusOf(...messages);
    expect([status, Number(seconds)]).toEqual([429, 48]);
    vi.setSystemTime(Date.now() + 47_000);
    expect(await statusOf(...chat)).toEqual([429, '1']);
    vi.setSystemTime(Date.now() + 1000);
    expect((await statusOf(...chat))[0]).toBe(200);
  });
});
