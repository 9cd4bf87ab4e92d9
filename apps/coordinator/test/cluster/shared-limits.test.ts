import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AttemptRepository } from '../../src/database/attempt-repository.js';
import { runExclusively, runOncePerPeriod } from '../../src/database/periodic-work.js';
import type { Database } from '../../src/database/tables.js';
import { WebhookDigestRepository } from '../../src/database/webhook-digest-repository.js';
import { WebhookReceiver } from '../../src/devices/webhook-receiver.js';
import { APPLE_TRUST_ANCHOR } from '../../src/providers/verification/chain/trust-anchor.js';
import { freshPostgres, type TestDatabase } from '../support/databases.js';
import { type Harness, NO_RATE_LIMITS, startCoordinator, until } from '../support/harness.js';
import { type NatsServer, startNats } from '../support/nats-server.js';

const IDS = ['a', 'b', 'c'];
const KEYS_PER_MINUTE = 9;
const WRONG_KEYS_PER_MINUTE = 5;
const COUNTED_BYTES_PER_MINUTE = 4000;

describe('three coordinators of one network', () => {
  let place: TestDatabase;
  let nats: NatsServer;
  const coordinators: Harness[] = [];
  const at = (index: number): Harness => coordinators[index % coordinators.length] as Harness;

  beforeAll(async () => {
    place = await freshPostgres();
    nats = await startNats();
    for (const id of IDS) {
      coordinators.push(
        await startCoordinator({
          config: {
            databaseUrl: 'url' in place.target ? place.target.url : null,
            cluster: { id, servers: [nats.url], nkeySeed: null, certificateAuthorityFile: null },
            countTokensBytesPerMinute: COUNTED_BYTES_PER_MINUTE,
            trustedProxies: ['127.0.0.1'],
            rateLimits: {
              ...NO_RATE_LIMITS,
              keyPerMinute: KEYS_PER_MINUTE,
              badKeysPerMinute: WRONG_KEYS_PER_MINUTE,
              addressPerMinute: 100,
              emailPerQuarterHour: 3,
            },
          },
        }),
      );
    }
    await until(() => coordinators.every(({ app }) => app.cluster.peerCount() === IDS.length - 1));
  });

  afterAll(async () => {
    for (const coordinator of coordinators) await coordinator.close();
    await nats.close();
    await place.remove();
  });

  const from = (address: string): { readonly 'x-forwarded-for': string } => ({ 'x-forwarded-for': address });
  const models = (index: number, key: string, address = '192.0.2.1'): Promise<Response> =>
    fetch(`${at(index).url}/v1/models`, { headers: { authorization: `Bearer ${key}`, ...from(address) } });
  const statusesOf = async (calls: readonly Promise<Response>[]): Promise<Map<number, number>> => {
    const counts = new Map<number, number>();
    for (const { status } of await Promise.all(calls)) counts.set(status, (counts.get(status) ?? 0) + 1);
    return counts;
  };
  const repeat = <T>(count: number, call: (index: number) => T): T[] => Array.from({ length: count }, (_, index) => call(index));

  it('admit exactly the limit of a key, in turn, with the headers of one limit', async () => {
    const { apiKey } = await at(0).customer(0);
    const remaining: (string | null)[] = [];
    for (let index = 0; index < KEYS_PER_MINUTE; index++) {
      const response = await models(index, apiKey);
      expect(response.status).toBe(200);
      expect(response.headers.get('x-ratelimit-limit-requests')).toBe(String(KEYS_PER_MINUTE));
      remaining.push(response.headers.get('x-ratelimit-remaining-requests'));
    }
    expect(remaining).toEqual(repeat(KEYS_PER_MINUTE, (index) => String(KEYS_PER_MINUTE - 1 - index)));
    for (let index = 0; index < 6; index++) {
      const response = await models(index, apiKey);
      expect(response.status).toBe(429);
      expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
      expect(Number(response.headers.get('retry-after'))).toBeLessThanOrEqual(60);
    }
  });

  it('admit exactly the limit of a key for concurrent requests, at every home', async () => {
    for (let round = 0; round < 6; round++) {
      const { apiKey } = await at(round).customer(0);
      expect(await statusesOf(repeat(45, (index) => models(index, apiKey)))).toEqual(
        new Map([
          [200, KEYS_PER_MINUTE],
          [429, 45 - KEYS_PER_MINUTE],
        ]),
      );
    }
  });

  it('tell an address the same number of wrong keys as one coordinator would', async () => {
    const wrong = (index: number): string => `sk-${String(index).padStart(43, 'x')}`;
    const counts = await statusesOf(repeat(30, (index) => models(index, wrong(index), '198.51.100.7')));
    expect(counts).toEqual(
      new Map([
        [401, WRONG_KEYS_PER_MINUTE],
        [429, 30 - WRONG_KEYS_PER_MINUTE],
      ]),
    );
    expect((await models(0, wrong(99), '198.51.100.8')).status).toBe(401);
    // A valid key is accepted even from the address that is blocked for wrong keys.
    const { apiKey } = await at(0).customer(0);
    expect((await models(1, apiKey, '198.51.100.7')).status).toBe(200);
  });

  it('limit the sign-ins of an e-mail address together', async () => {
    const signIn = (index: number): Promise<Response> =>
      fetch(`${at(index).url}/console/auth/sign-in/email`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', origin: at(index).url, ...from('203.0.113.5') },
        body: JSON.stringify({ email: 'ada@example.com', password: 'not the password' }),
      });
    expect(await statusesOf(repeat(12, signIn))).toEqual(
      new Map([
        [401, 3],
        [429, 9],
      ]),
    );
    const rows = await at(0).app.database.selectFrom('attempt_counts').selectAll().execute();
    expect(rows.length).toBeGreaterThan(0);
    expect(rows.filter(({ name }) => !/^[0-9a-f]{64}$/.test(name))).toEqual([]);
  });

  it('share the cookie of a session, and guesses of device codes', async () => {
    const headers = { 'content-type': 'application/json', ...from('203.0.113.9') };
    const signedUp = await fetch(`${at(0).url}/console/auth/sign-up/email`, {
      method: 'POST',
      headers: { ...headers, origin: at(0).url },
      body: JSON.stringify({ email: 'ben@example.com', password: 'a long password', name: 'Ben' }),
    });
    expect(signedUp.status).toBe(200);
    const cookie = signedUp.headers
      .getSetCookie()
      .map((one) => one.split(';')[0])
      .join('; ');
    for (const { url } of coordinators) {
      const me = await fetch(`${url}/console/v1/me`, { headers: { cookie } });
      expect(await me.json()).toMatchObject({ email: 'ben@example.com' });
    }
    const guess = (index: number): Promise<Response> =>
      fetch(`${at(index).url}/console/v1/device-codes/BBBB-BBB${'BCDFGHJKLMNPQRSTVWXZ'[index % 20]}`, { headers: { cookie } });
    expect(await statusesOf(repeat(40, guess))).toEqual(
      new Map([
        [404, 10],
        [429, 30],
      ]),
    );
  });

  it('count the bytes of free token counting together', async () => {
    const { apiKey } = await at(0).customer(0);
    const body = JSON.stringify({ model: 'test/model-1', messages: [{ role: 'user', content: 'x'.repeat(1400) }] });
    const count = (index: number): Promise<Response> =>
      fetch(`${at(index).url}/v1/messages/count_tokens`, {
        method: 'POST',
        headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
        body,
      });
    const counts = await statusesOf(repeat(6, count));
    expect(counts.get(429)).toBe(4);
  });

  it('refuse guesses that cannot be counted', async () => {
    const { database } = at(0).app;
    await database.schema.alterTable('attempt_counts').renameTo('attempt_counts_away').execute();
    const signIn = await fetch(`${at(1).url}/console/auth/sign-in/email`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: at(1).url },
      body: JSON.stringify({ email: 'ben@example.com', password: 'a long password' }),
    });
    const wrongKey = await models(2, `sk-${'y'.repeat(43)}`, '198.51.100.9');
    await database.schema.alterTable('attempt_counts_away').renameTo('attempt_counts').execute();
    expect([signIn.status, wrongKey.status]).toEqual([500, 500]);
    expect((await models(2, `sk-${'y'.repeat(43)}`, '198.51.100.9')).status).toBe(401);
  });

  it('divide limits while the others do not answer', async () => {
    await nats.stop('SIGKILL');
    await until(() => coordinators.every(({ app }) => app.cluster.peerCount() === 0));
    const { apiKey } = await at(0).customer(0);
    const counts = await statusesOf(repeat(45, (index) => models(index, apiKey)));
    expect(counts.get(200)).toBe(KEYS_PER_MINUTE);
    await nats.start();
    await until(() => coordinators.every(({ app }) => app.cluster.peerCount() === IDS.length - 1));
    const { apiKey: another } = await at(0).customer(0);
    expect((await statusesOf(repeat(45, (index) => models(index, another)))).get(200)).toBeLessThanOrEqual(KEYS_PER_MINUTE);
  });
});

describe('counters of one PostgreSQL', () => {
  let place: TestDatabase;
  const databases: Database[] = [];

  beforeAll(async () => {
    place = await freshPostgres();
    for (const _ of IDS) databases.push(await place.open());
  });
  afterAll(async () => {
    for (const database of databases) await database.destroy();
    await place.remove();
  });

  it('count concurrent attempts exactly, forget refunded attempts, and begin again after the window', async () => {
    const errors: unknown[] = [];
    const counters = databases.map((database) => {
      const attempts = new AttemptRepository({ database, secret: Buffer.alloc(32, 7), onWriteError: (error) => errors.push(error) });
      return attempts.counter('guesses', { maxAttempts: 7, windowMs: 600_000 });
    });
    const counter = (index: number) => counters[index % counters.length] as (typeof counters)[number];
    const waits = await Promise.all(Array.from({ length: 60 }, (_, index) => counter(index).count('ada')));
    expect(waits.filter((wait) => wait === null)).toHaveLength(7);
    expect(waits.every((wait) => wait === null || (wait > 500 && wait <= 600))).toBe(true);
    await counter(0).refund('ada');
    expect(await counter(1).count('ada')).toBeNull();
    const wait = await counter(2).count('ada');
    expect(wait).toBeGreaterThan(500);
    expect(wait).toBeLessThanOrEqual(600);
    expect(await counter(1).count('ben')).toBeNull();
    await (databases[0] as Database)
      .updateTable('attempt_counts')
      .set((set) => ({ expires_at: set('expires_at', '-', 600_000) }))
      .execute();
    const later = await Promise.all(Array.from({ length: 30 }, (_, index) => counter(index).count('ada')));
    expect(later.filter((wait) => wait === null)).toHaveLength(7);
    expect(errors).toEqual([]);
  });

  it('take a webhook event once', async () => {
    const repositories = databases.map((database) => new WebhookDigestRepository(database));
    const taken = await Promise.all(repositories.map((digests) => digests.add('ab'.repeat(32), 60_000)));
    expect(taken.filter((isNew) => isNew)).toHaveLength(1);
    await repositories[0]?.prune();
    expect(await repositories[1]?.add('ab'.repeat(32), 60_000)).toBe(false);
    const receivers = databases.map(
      (database, index) =>
        new WebhookReceiver({
          database,
          anchor: APPLE_TRUST_ANCHOR,
          now: Date.now,
          onChange: () => {},
          sharedDigests: repositories[index] as WebhookDigestRepository,
        }),
    );
    const event = {
      kind: 'check_in',
      topic: 'CheckOut',
      deviceId: 'd',
      parameters: {},
      digest: 'cd'.repeat(32),
      createdAt: Date.now(),
    } as const;
    const outcomes = await Promise.all(receivers.map((receiver) => receiver.take(event)));
    expect(outcomes.map(({ kind }) => kind).sort()).toEqual(['ignored', 'refused', 'refused']);
  });

  it('run periodic work once per period, and again after a failure', async () => {
    let runs = 0;
    const work = async (): Promise<string> => {
      runs++;
      return 'done';
    };
    await expect(runOncePerPeriod(databases[0] as Database, 'work', 60_000, () => Promise.reject(new Error('failed')))).rejects.toThrow(
      'failed',
    );
    const results = await Promise.all(databases.map((database) => runOncePerPeriod(database, 'work', 60_000, work)));
    for (const database of databases) results.push(await runOncePerPeriod(database, 'work', 60_000, work));
    expect([runs, results.filter((result) => result === 'done').length]).toEqual([1, 1]);
  });

  it('let one run exclusive work at a time', async () => {
    const [first, second] = databases as [Database, Database];
    const outcome = await runExclusively(first, 'alone', () => runExclusively(second, 'alone', async () => 'both'));
    expect(outcome).toBeNull();
    expect(await runExclusively(second, 'alone', async () => 'free')).toBe('free');
  });
});
