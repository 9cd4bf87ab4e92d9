/** `GET /v1/e2e/keyset`, and the attestation records that its entries reference by hash. */
import { E2eKeysetSchema, fromUtf8, keysetLeafBytes, keysetPublicKey } from '@inference/protocol';
import { nodeE2eCrypto, sha256Hex } from '@inference/protocol/crypto';
import type { Static } from 'typebox';
import { Value } from 'typebox/value';
import { afterEach, expect, it, onTestFinished, vi } from 'vitest';
import { LightAgent, makeKeys } from '../../../../../test/support/light/agent.js';
import type { StoredKeyset } from '../../../src/database/keyset-repository.js';
import { LogRepository } from '../../../src/database/log-repository.js';
import { KeysetPublisher } from '../../../src/routes/e2e/keyset-publisher.js';
import { TransparencyLog } from '../../../src/transparency-log/transparency-log.js';
import { type Harness, MODEL, startHarness, until } from '../../support/harness.js';

let harness: Harness;
afterEach(() => harness.close());

type Keyset = Static<typeof E2eKeysetSchema>;

const read = async (): Promise<Keyset> => (await (await harness.get('/v1/e2e/keyset', null)).json()) as Keyset;

const ENTRY: Keyset['providers'][number] = {
  provider_id: 'a'.repeat(32) as Keyset['providers'][number]['provider_id'],
  key_id: 'b'.repeat(16) as Keyset['providers'][number]['key_id'],
  x25519: '',
  not_after: 1,
  models: [MODEL],
  weight: 1,
  record_sha256: 'c'.repeat(64),
};

it('lists the keys of providers that serve the mode, the same for everybody', async () => {
  let now = Date.now();
  harness = await startHarness({ now: () => now });
  const provider = await harness.provider({ onSealedJob: (job) => job.answer(), slots: 3 });
  await harness.provider();
  const response = await harness.get('/v1/e2e/keyset', null);
  expect(response.headers.get('access-control-allow-origin')).toBe('*');
  const text = await response.text();
  expect(await (await harness.get('/v1/e2e/keyset')).text()).toBe(text);
  const keyset = JSON.parse(text) as Keyset;
  expect(Value.Check(E2eKeysetSchema, keyset)).toBe(true);
  expect(keyset.providers).toMatchObject([{ provider_id: provider.providerId, models: [MODEL], weight: 3 }]);
  const [entry] = keyset.providers;
  if (entry === undefined) throw new Error('no entry');
  expect(keysetPublicKey(nodeE2eCrypto, entry)).toEqual(new Uint8Array(provider.sealingKey.publicKey));
  const record = await (await harness.get(`/v1/e2e/records/${entry.record_sha256}`, null)).text();
  expect(sha256Hex(Buffer.from(record))).toBe(entry.record_sha256);
  expect(JSON.parse(record)).toMatchObject({ provider_id: provider.providerId });
  expect((await harness.get(`/v1/e2e/records/${'0'.repeat(64)}`, null)).status).toBe(404);
  const etag = response.headers.get('etag') ?? '';
  expect((await fetch(`${harness.url}/v1/e2e/keyset`, { headers: { 'if-none-match': etag } })).status).toBe(304);
  // An unchanged keyset keeps its epoch until its maximum age.
  now += 60_000;
  expect((await read()).epoch).toBe(keyset.epoch);
  now += 600_000;
  expect(await read()).toMatchObject({ epoch: keyset.epoch + 1, issued_at: now });
});

it('follows providers that come and go', async () => {
  let now = Date.now();
  harness = await startHarness({ now: () => now });
  expect(await read()).toMatchObject({ providers: [] });
  const provider = await harness.provider({ onSealedJob: (job) => job.answer() });
  now += 6000;
  const listed = await read();
  expect(listed.providers.map(({ provider_id }) => provider_id)).toEqual([provider.providerId]);
  provider.close();
  await until(async () => {
    now += 6000;
    return (await read()).providers.length === 0;
  });
  expect((await read()).epoch).toBeGreaterThan(listed.epoch);
});

const failures = (): number => harness.log.filter((line) => line.includes('could not be appended to the transparency log')).length;

it('reports once that the log fails, and lists the provider without an index meanwhile', async () => {
  let now = Date.now();
  const append = vi.spyOn(TransparencyLog.prototype, 'providerIndex').mockRejectedValue(new Error('the database is away'));
  onTestFinished(() => append.mockRestore());
  harness = await startHarness({ now: () => now });
  await harness.provider({ onSealedJob: (job) => job.answer() });
  const before = failures();
  for (let round = 0; round < 3; round++) {
    expect((await read()).providers.map(({ log_index }) => log_index)).toEqual([undefined]);
    now += 6000;
  }
  expect(failures()).toBe(before + 1);
  append.mockRestore();
  expect((await read()).providers.map(({ log_index }) => log_index)).toEqual([expect.any(Number)]);
});

it('reports an outage of the log again only after a key was appended, not after an index came from the cache', async () => {
  let now = Date.now();
  harness = await startHarness({ now: () => now });
  await harness.provider({ onSealedJob: (job) => job.answer() });
  const listedCount = async (): Promise<number> => {
    now += 6000;
    return (await read()).providers.length;
  };
  expect(await listedCount()).toBe(1);
  const before = failures();
  const original = LogRepository.prototype.append;
  const failForProviders = () =>
    vi.spyOn(LogRepository.prototype, 'append').mockImplementation(function (this: LogRepository, entry) {
      return entry.kind === 'provider' ? Promise.reject(new Error('the database is away')) : original.call(this, entry);
    });
  let append = failForProviders();
  onTestFinished(() => append.mockRestore());
  for (let round = 0; round < 2; round++) {
    const unlogged = await harness.provider({ onSealedJob: (job) => job.answer() });
    expect(await listedCount()).toBe(2);
    await unlogged.close();
    await until(() => harness.app.providers.snapshot(unlogged.providerId) === null);
    expect(await listedCount()).toBe(1);
    expect(failures()).toBe(before + 1);
  }
  append.mockRestore();
  await harness.provider({ onSealedJob: (job) => job.answer() });
  expect(await listedCount()).toBe(2);
  append = failForProviders();
  await harness.provider({ onSealedJob: (job) => job.answer() });
  expect(await listedCount()).toBe(3);
  expect(failures()).toBe(before + 2);
});

it('names records that are served, also right after a restart', async () => {
  let now = Date.now();
  const options = { url: '', models: [MODEL], keys: makeKeys() };
  const before = await startHarness({ now: () => now });
  const first = await LightAgent.join({ ...options, url: before.url });
  const { epoch, providers } = (await (await before.get('/v1/e2e/keyset', null)).json()) as Keyset;
  first.leave();
  await before.app.close(200);
  now += 1000;
  harness = await startHarness({ now: () => now, config: { dataDir: before.dataDir } });
  const second = await LightAgent.join({ ...options, url: harness.url });
  const restarted = await read();
  expect(restarted.epoch).toBeGreaterThan(epoch);
  expect(restarted.providers.map(({ key_id }) => key_id)).toEqual(providers.map(({ key_id }) => key_id));
  // The new record differs, because it contains the response to a new challenge.
  const [{ record_sha256 } = ENTRY] = restarted.providers;
  expect(record_sha256).not.toBe(providers[0]?.record_sha256);
  expect((await harness.get(`/v1/e2e/records/${record_sha256}`, null)).status).toBe(200);
  second.leave();
});

it('has a proof where a log takes keysets, and keeps the newest logged keyset while the log takes none', async () => {
  const stored: StoredKeyset[] = [];
  const claims: StoredKeyset[] = [];
  const repository = {
    newest: async () => stored.at(-1) ?? null,
    newestClaim: async () => claims.at(-1) ?? null,
    claim: async (keyset: StoredKeyset) => (claims.push(keyset) > 0 ? keyset : null),
    publish: async (keyset: StoredKeyset) => stored.push(keyset) > 0,
  };
  const leaves: string[] = [];
  let isTaking = true;
  let now = 0;
  let weight = 1;
  let record = ENTRY.record_sha256;
  let newestRegistrationAt = -1;
  const publisher = new KeysetPublisher({
    repository,
    providers: async () => ({ entries: [{ ...ENTRY, weight, record_sha256: record }], newestRegistrationAt }),
    log: {
      publish: async (leaf) => {
        leaves.push(fromUtf8(leaf));
        return isTaking ? { checkpoint: 'note', leaf_index: leaves.length - 1, inclusion_proof: [] } : null;
      },
    },
    now: () => now,
  });
  const current = async (): Promise<Keyset> => JSON.parse((await publisher.current()).value.body) as Keyset;
  expect(await current()).toMatchObject({ epoch: 1, log: { checkpoint: 'note', leaf_index: 0 } });
  expect(leaves).toEqual([fromUtf8(keysetLeafBytes(await current()))]);
  record = 'd'.repeat(64);
  now += 30_000;
  expect(await current()).toMatchObject({ epoch: 1 });
  weight = 2;
  now += 6000;
  expect(await current()).toMatchObject({ epoch: 2, providers: [{ weight: 2 }] });
  // After a new registration, no coordinator may have the provider's earlier record. So a keyset with the new record is due at once.
  record = 'e'.repeat(64);
  now += 6000;
  newestRegistrationAt = now - 1;
  expect(await current()).toMatchObject({ epoch: 3, providers: [{ record_sha256: record }] });
  isTaking = false;
  weight = 3;
  now += 30_000;
  expect(await current()).toMatchObject({ epoch: 3 });
  now += 6000;
  expect(await current()).toMatchObject({ epoch: 3 });
  expect(new Set(leaves.slice(3)).size, 'a claimed epoch keeps its content').toBe(1);
  now += 600_000;
  expect((await current()).log).toBeUndefined();
  expect(await current()).toMatchObject({ epoch: 5, providers: [{ weight: 3 }] });
});
