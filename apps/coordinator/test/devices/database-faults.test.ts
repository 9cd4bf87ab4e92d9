/** Device reports and evidence while the database fails or hangs. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/tables.js';
import { WebhookDigestRepository } from '../../src/database/webhook-digest-repository.js';
import { DeviceEvidenceCache } from '../../src/devices/device-evidence-cache.js';
import { WebhookReceiver } from '../../src/devices/webhook-receiver.js';
import { APPLE_TRUST_ANCHOR } from '../../src/providers/verification/chain/trust-anchor.js';
import { freshSqlite, type TestDatabase } from '../support/fresh-database.js';

const NOW = 1_790_000_000_000;

let test: TestDatabase;
let connection: Database;
/** Called before the result of each query of `database`. */
let beforeQuery: () => Promise<void>;
let database: Database;

beforeAll(async () => {
  test = await freshSqlite();
  connection = await test.open();
  database = connection.withPlugin({
    transformQuery: ({ node }) => node,
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
  beforeQuery = async () => {};
});

describe('an event that the database could not store', () => {
  const event = { kind: 'check_in', topic: 'CheckOut', deviceId: 'd', parameters: {}, createdAt: NOW } as const;

  it.each([
    ['one coordinator', () => null],
    ['a cluster', () => new WebhookDigestRepository(connection)],
  ])('is accepted when its sender repeats it, once: %s', async (what, sharedDigests) => {
    const options = { database, anchor: APPLE_TRUST_ANCHOR, now: () => NOW, onChange: () => {}, sharedDigests: sharedDigests() };
    const receiver = new WebhookReceiver(options);
    const take = () => receiver.take({ ...event, digest: what });
    beforeQuery = () => Promise.reject(new Error('disk full'));
    await expect(take()).rejects.toThrow('disk full');
    beforeQuery = async () => {};
    expect(await take()).toEqual({ kind: 'ignored', reason: 'unknown_device' });
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
    const cache = new DeviceEvidenceCache({ database, anchor: APPLE_TRUST_ANCHOR, now: () => NOW, onReadError: () => {} });
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
    await Promise.resolve();
    const later = Array.from({ length: 500 }, () => cache.refresh('key'));
    resume();
    await Promise.all([...requested, ...later]);
    expect(queries).toBe(2 * perRead);
  });
});
