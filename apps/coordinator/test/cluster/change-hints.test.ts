/** Changes at one coordinator reach the other at once, by change hints: in these tests, periodic reads are too rare to be the cause. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { microUsd } from '../../src/billing/micro-usd.js';
import { findKey, hashKey } from '../../src/database/accounts/api-key-repository.js';
import { addMachineToken, hashMachineToken, newMachineToken } from '../../src/database/providers/machine-token-repository.js';
import { startTwoCoordinators, type TwoCoordinators } from '../support/cluster-harness.js';
import { Browser } from '../support/console-client.js';
import { MODEL, until } from '../support/harness.js';
import type { ScriptedProvider } from '../support/scripted-provider.js';

let cluster: TwoCoordinators;
let provider: ScriptedProvider;

beforeAll(async () => {
  cluster = await startTwoCoordinators({ refreshMs: 3_600_000 });
  provider = await cluster.far.provider();
  await until(() => cluster.near.app.cluster.servingAtPeers(MODEL) === 1);
});
afterAll(() => cluster.close());

const admin = (method: string, path: string, body?: object) =>
  fetch(cluster.near.url + path, {
    method,
    headers: { authorization: `Bearer ${cluster.far.adminKey}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });

describe('the other coordinator learns at once of', () => {
  it('a revoked key, and a suspended account', async () => {
    const statusOf = async (key: string) => (await cluster.far.get('/v1/models', key)).status;
    const { accountId, apiKey } = await cluster.near.customer(0);
    const other = await cluster.near.addKey(accountId);
    expect([await statusOf(apiKey), await statusOf(other)]).toEqual([200, 200]);
    const { id } = (await findKey(cluster.near.app.database, hashKey(apiKey))) ?? { id: '' };
    await cluster.near.app.apiKeyCache.revoke(id);
    await until(async () => (await statusOf(apiKey)) === 401);
    expect(await statusOf(other)).toBe(200);
    const owner = new Browser(cluster.near.url);
    await owner.signUp('grace@example.com');
    const me = (await (await owner.get('/console/v1/me')).json()) as { id: string };
    const { secret } = await owner.newKey();
    expect(await statusOf(secret)).toBe(200);
    expect((await admin('PATCH', `/admin/v1/accounts/${me.id}`, { suspended: true })).status).toBe(200);
    await until(async () => (await statusOf(secret)) !== 200);
  });

  it('a price', async () => {
    await cluster.near.app.prices.set({
      model: MODEL,
      promptPerMillion: microUsd(7),
      completionPerMillion: microUsd(7),
      perImage: microUsd(7),
    });
    await until(() => cluster.far.app.prices.current(MODEL).promptPerMillion === 7);
  });

  it('the catalogue', async () => {
    const entry = { display_name: 'One', quantization: '8bit', model_type: 'text' };
    expect((await admin('PUT', `/admin/v1/catalogue/${MODEL}`, entry)).status).toBe(200);
    await until(async () => (await (await cluster.far.get('/admin/v1/catalogue', cluster.far.adminKey)).text()).includes('"One"'));
  });

  it('a quarantine, and its end', async () => {
    const path = `/admin/v1/providers/${provider.providerId}`;
    expect((await admin('POST', `${path}/quarantine`, { reason: 'under suspicion' })).status).toBe(200);
    await until(() => cluster.far.app.providers.snapshot(provider.providerId)?.quarantine?.reason === 'under suspicion');
    expect((await admin('POST', `${path}/release`)).status).toBe(200);
    await until(() => cluster.far.app.providers.snapshot(provider.providerId)?.quarantine === null);
  });

  it('a restriction of a provider, and its end', async () => {
    const { providerId } = provider;
    const stateAt = (which: 'near' | 'far') => cluster[which].app.providers.reputations.summaryOf(providerId).state;
    cluster.near.app.providers.reputations.recordFault(providerId, 'unverified', 'answers_not_verified');
    expect(stateAt('near')).not.toBe('well');
    await until(() => stateAt('far') !== 'well');
    const list = (await (await cluster.near.get('/admin/v1/providers', cluster.far.adminKey)).json()) as {
      restrained: { provider_id: string }[];
    };
    expect(list.restrained.map(({ provider_id }) => provider_id)).toEqual([providerId]);
    expect((await admin('POST', `/admin/v1/providers/${providerId}/reinstate`)).status).toBe(200);
    await until(() => stateAt('far') === 'well' && stateAt('near') === 'well');
    expect((await admin('POST', `/admin/v1/providers/${providerId}/reinstate`)).status).toBe(404);
  });

  it('an unlinked provider, but no false hint unlinks', async () => {
    const owner = new Browser(cluster.near.url);
    await owner.signUp('ada@example.com');
    const { id: accountId } = (await (await owner.get('/console/v1/me')).json()) as { id: string };
    const token = newMachineToken();
    await addMachineToken(cluster.near.app.database, { hash: hashMachineToken(token), accountId, machineName: 'Mac', now: Date.now() });
    provider.send({ type: 'link', token });
    await provider.next('linked');
    cluster.near.app.changeHints.publish('unlinked', provider.providerId);
    // Hints of one coordinator arrive in order.
    await cluster.near.app.prices.set({
      model: MODEL,
      promptPerMillion: microUsd(8),
      completionPerMillion: microUsd(8),
      perImage: microUsd(8),
    });
    await until(() => cluster.far.app.prices.current(MODEL).promptPerMillion === 8);
    expect(provider.received.some(({ type }) => type === 'link_refused')).toBe(false);
    expect((await owner.send('DELETE', `/console/v1/machines/${provider.providerId}`)).status).toBe(200);
    await until(() => provider.received.some(({ type }) => type === 'link_refused'));
  });
});
