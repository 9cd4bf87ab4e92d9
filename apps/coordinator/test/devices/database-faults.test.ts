/** Device reports and evidence while the database fails or hangs. */
import type { PluginTransformResultArgs } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { MAX_READ_MS } from '../../src/database/periodic-refresh.js';
import type { Database } from '../../src/database/tables.js';
import { WebhookDigestRepository } from '../../src/database/webhook-digest-repository.js';
import { DeviceEvidenceCache } from '../../src/devices/device-evidence-cache.js';
import { MAX_EVENT_AGE_MS } from '../../src/devices/webhook.js';
import { WebhookReceiver } from '../../src/devices/webhook-receiver.js';
import { APPLE_TRUST_ANCHOR } from '../../src/providers/verification/chain/trust-anchor.js';
import { freshSqlite, type TestDatabase } from '../support/fresh-database.js';

const NOW = 1_790_000_000_000;

let test: TestDatabase;
let connection: Database;
/** Called with each query of `database` before the database executes it. */
let beforeExecution: () => void;
/** Called before the result of each query of `database`. */
let beforeQuery: () => Promise<void>;
let database: Database;

beforeAll(async () => {
  test = await freshSqlite();
  connection = await test.open();
  database = connection.withPlugin({
    transformQuery: ({ node }) => {
      beforeExecution();
      return node;
    },
    transformResult: async ({ result }) => {
      await beforeQuery();
      return result;
    },
  });
});
afterAll(async () => {
  await connection.destroy();
  await test.remove();
});
beforeEach(() => {
  beforeExecution = () => {};
  beforeQuery = async () => {};
});

describe('an event that the database could not store', () => {
  const event = { kind: 'check_in', topic: 'CheckOut', deviceId: 'd', parameters: {}, createdAt: NOW } as const;

  it.each([
    ['one coordinator', () => null],
    ['a cluster', () => new WebhookDigestRepository(database)],
  ])('is accepted when its sender repeats it, once: %s', async (what, sharedDigests) => {
    const options = { database, anchor: APPLE_TRUST_ANCHOR, now: () => NOW, onChange: () => {}, sharedDigests: sharedDigests() };
    const receiver = new WebhookReceiver(options);
    const take = () => receiver.take({ ...event, digest: what });
    beforeExecution = () => {
      throw new Error('disk full');
    };
    await expect(take()).rejects.toThrow('disk full');
    beforeExecution = () => {};
    expect(await take()).toEqual({ kind: 'ignored', reason: 'unknown_device' });
    expect(await take()).toEqual({ kind: 'refused', code: 'replayed' });
  });

  it.each([
    ['the answer to its first statement was lost', 'answer'],
    ['all later statements failed', 'execution'],
  ])('is accepted 30 s later in a cluster where %s, once', async (_when, fault) => {
    const sharedDigests = new WebhookDigestRepository(database);
    const receiver = new WebhookReceiver({ database, anchor: APPLE_TRUST_ANCHOR, now: () => NOW, onChange: () => {}, sharedDigests });
    const take = () => receiver.take({ ...event, digest: fault });
    const passTime = async (ms: number) => {
      await connection
        .updateTable('webhook_digests')
        .set((set) => ({ expires_at: set('expires_at', '-', ms) }))
        .execute();
    };
    let statements = 0;
    if (fault === 'answer') beforeQuery = () => Promise.reject(new Error('connection lost'));
    beforeExecution = () => {
      statements++;
      if (statements > 1) throw new Error('connection lost');
    };
    await expect(take()).rejects.toThrow('connection lost');
    beforeQuery = async () => {};
    beforeExecution = () => {};
    expect(await take()).toEqual({ kind: 'refused', code: 'replayed' });
    await passTime(30_001);
    const outcomes = await Promise.all([take(), take()]);
    expect(outcomes.map(({ kind }) => kind).sort()).toEqual(['ignored', 'refused']);
    await passTime(2 * MAX_EVENT_AGE_MS - 60_000);
    expect(await take()).toEqual({ kind: 'refused', code: 'replayed' });
  });

  it('is accepted again for an ACME answer', async () => {
    const receiver = new WebhookReceiver({ database, anchor: APPLE_TRUST_ANCHOR, now: () => NOW, onChange: () => {}, sharedDigests: null });
    const take = () => receiver.takeAcme({ enrolmentToken: 'e', token: 't', attestationObject: '', digest: 'acme' });
    beforeQuery = () => Promise.reject(new Error('disk full'));
    await expect(take()).rejects.toThrow('disk full');
    beforeQuery = async () => {};
    expect(await take()).toEqual({ kind: 'refused', code: 'unknown_token' });
  });
});

describe('evidence', () => {
  it('is read once more after a read that hangs, however often it was requested', async () => {
    let queries = 0;
    beforeQuery = async () => void queries++;
    const cache = new DeviceEvidenceCache({ database, anchor: APPLE_TRUST_ANCHOR, now: () => NOW, onError: () => {} });
    await cache.watch('key');
    const perRead = queries;
    queries = 0;
    let resume = (): void => {};
    const hanging = new Promise<void>((resolve) => {
      resume = resolve;
    });
    beforeQuery = () => {
      queries++;
      return hanging;
    };
    const requested = Array.from({ length: 500 }, () => cache.refresh('key'));
    expect(new Set(requested).size).toBe(1);
    while (queries === 0) await Promise.resolve();
    const later = Array.from({ length: 500 }, () => cache.refresh('key'));
    resume();
    await Promise.all([...requested, ...later]);
    expect(queries).toBe(2 * perRead);
  });

  it('is reported to the other listeners although one throws', async () => {
    beforeQuery = async () => {};
    const errors: unknown[] = [];
    const changed: string[] = [];
    const onError = (error: unknown) => void errors.push(error);
    const cache = new DeviceEvidenceCache({ database, anchor: APPLE_TRUST_ANCHOR, now: () => NOW, onError });
    cache.onRead(() => {
      throw new Error('listener');
    });
    cache.onRead((key) => changed.push(key));
    await cache.watch('key');
    await cache.refresh('key');
    expect(changed).toEqual(['key', 'key']);
    expect(errors).toEqual([new Error('listener'), new Error('listener')]);
  });

  it('is read again although a read never ends, and a late result does not replace a newer one', async () => {
    let resume = (): void => {};
    const hanging = new Promise<void>((resolve) => {
      resume = resolve;
    });
    // A connection of its own, because SQLite's only one would block the next read too.
    const lost = await test.open();
    const transformResult = async ({ result }: PluginTransformResultArgs) => {
      await hanging;
      return result;
    };
    const stalled = lost.withPlugin({ transformQuery: ({ node }) => node, transformResult });
    let isStalled = true;
    const switching = new Proxy(connection, {
      get: (target, name) => {
        const source = isStalled ? stalled : target;
        const value: unknown = Reflect.get(source, name, source);
        return typeof value === 'function' ? value.bind(source) : value;
      },
    });
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      let now = NOW;
      const cache = new DeviceEvidenceCache({ database: switching, anchor: APPLE_TRUST_ANCHOR, now: () => now, onError: () => {} });
      const first = cache.watch('key');
      await Promise.resolve();
      isStalled = false;
      const second = cache.refresh('key');
      await vi.advanceTimersByTimeAsync(MAX_READ_MS);
      await Promise.all([first, second]);
      expect(cache.device('key')).toMatchObject({ readAt: NOW });
      now += 1;
      resume();
      for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
      expect(cache.device('key')).toMatchObject({ readAt: NOW });
    } finally {
      vi.useRealTimers();
      await lost.destroy();
    }
  });
});
