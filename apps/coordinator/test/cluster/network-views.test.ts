import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { generate, imageProvider, urlsOf } from '../images/pictures.js';
import { startTwoCoordinators, type TwoCoordinators } from '../support/cluster-harness.js';
import { Browser } from '../support/console-client.js';
import { MODEL, until } from '../support/harness.js';
import type { ScriptedProvider } from '../support/scripted-provider.js';

let cluster: TwoCoordinators;
let provider: ScriptedProvider;

beforeAll(async () => {
  cluster = await startTwoCoordinators();
  provider = await cluster.far.provider({ serial: 'FARSERIAL1' });
  await until(() => cluster.near.app.cluster.servingAtPeers(MODEL) === 1);
});
afterAll(() => cluster.close());

const read = async (path: string, key: string | null = cluster.far.apiKey) => {
  const [near, far] = await Promise.all([cluster.near.get(path, key), cluster.far.get(path, key)]);
  return { status: near.status, near: JSON.parse(await near.text()), far: JSON.parse(await far.text()) };
};

describe('a coordinator without providers', () => {
  it.each(['/v1/models', `/v1/models/${MODEL}`, '/v1/prices', '/v1/providers/attestation'])('serves %s of the network', async (path) => {
    const { status, near, far } = await read(path);
    expect(status).toBe(200);
    expect(near).toEqual(far);
    expect(JSON.stringify(near)).toContain(MODEL);
  });

  it('serves the attestation of one provider', async () => {
    const { near, far } = await read(`/v1/providers/attestation?provider_id=${provider.providerId}`, null);
    expect(near.providers).toHaveLength(1);
    expect(near).toEqual(far);
  });

  it('suggests models of peers', async () => {
    const { status, near, far } = await read(`/v1/models/${MODEL}x`);
    expect(status).toBe(404);
    expect(near.error.message).toBe(far.error.message);
    expect(near.error.message).toContain(MODEL);
  });

  it('counts the providers of peers in its statistics', async () => {
    const { near } = await read('/v1/stats', null);
    expect(near.active_providers).toBe(1);
    expect(near.total_memory_gb).toBeGreaterThan(0);
    expect(near.providers.map(({ id }: { id: string }) => id)).toEqual([provider.providerId]);
    expect(near.models).toEqual([{ id: MODEL, providers: 1 }]);
  });

  it('answers a provider with its status, and refuses other tokens', async () => {
    const token = (await provider.next('registered')).token ?? '';
    const { status, near } = await read('/v1/providers/me', token);
    expect(status).toBe(200);
    expect(near.provider_id).toBe(provider.providerId);
    expect((await cluster.near.get('/v1/providers/me', `${token}A`)).status).toBe(401);
    expect((await cluster.near.get('/v1/providers/me', `${'0'.repeat(32)}${token.slice(32)}`)).status).toBe(401);
  });

  it('tells a provider the demand of clients anywhere', async () => {
    const token = (await provider.next('registered')).token ?? '';
    expect((await cluster.near.chat()).status).toBe(200);
    for (const status of Object.values(await read('/v1/providers/me', token)).slice(1)) {
      expect(status.models).toMatchObject([{ id: MODEL, demand: { requests_last_5_minutes: 1 } }]);
      expect(status.next_steps.map(({ code }: { code: string }) => code)).not.toContain('no_demand');
    }
  });

  it('shows operators the providers of peers', async () => {
    const key = cluster.far.adminKey;
    const list = await read('/admin/v1/providers', key);
    expect(list.near.providers.map(({ provider_id }: { provider_id: string }) => provider_id)).toEqual([provider.providerId]);
    expect(list.near.connections).toBe(1);
    const one = await read(`/admin/v1/providers/${provider.providerId}`, key);
    expect(one.status).toBe(200);
    expect(one.near.provider.session_id).toBe(provider.sessionId);
    expect(one.near.status.provider_id).toBe(provider.providerId);
    const placement = await read(`/admin/v1/placement?model=${MODEL}`, key);
    expect(placement.near).toEqual(placement.far);
    expect(placement.near.serving).toBe(true);
    const health = await read('/admin/v1/health', key);
    expect(health.near.fleet).toEqual({ ...health.far.fleet, providers: 1, models: 1 });
    expect(health.near.coordinators.map(({ id, fleet }: { id: string; fleet: object }) => [id, fleet])).toEqual([
      ['near', expect.objectContaining({ providers: 0 })],
      ['far', expect.objectContaining({ providers: 1, connections: 1 })],
    ]);
  });

  it('reads the receipt of an answer at once, at every coordinator', async () => {
    const response = await cluster.near.chat({}, { headers: { authorization: `Bearer ${cluster.far.apiKey}` } });
    expect(response.status).toBe(200);
    await response.text();
    const receipt = JSON.parse(Buffer.from(response.headers.get('x-inference-receipt') ?? '', 'base64url').toString());
    // Only this coordinator has the receipt yet.
    const far = await cluster.far.get(`/v1/receipts/${receipt.job_id}`);
    expect(await far.json()).toMatchObject({ object: 'inference.receipt', claims: receipt });
    const stranger = await cluster.far.customer(0);
    expect((await cluster.far.get(`/v1/receipts/${receipt.job_id}`, stranger.apiKey)).status).toBe(404);
  });

  it('shows owners their machines at every coordinator', async () => {
    const owner = new Browser(cluster.near.url);
    await owner.signUp('ada@example.com');
    const { id } = (await (await owner.get('/console/v1/me')).json()) as { id: string };
    const path = `/admin/v1/providers/${provider.providerId}/link`;
    const linked = await owner.send('POST', path, { account_id: id }, { authorization: `Bearer ${cluster.far.adminKey}` });
    expect(linked.status).toBe(200);
    expect(await (await owner.get('/console/v1/machines')).json()).toMatchObject({
      data: [{ provider_id: provider.providerId, live: { serial_number: 'FARSERIAL1', models: [MODEL] } }],
    });
    const page = await (await owner.get(`/console/v1/machines/${provider.providerId}`)).json();
    expect(page).toMatchObject({ status: { provider_id: provider.providerId, slots: 4 } });
  });

  it('serves images that another coordinator keeps, whole and in part', async () => {
    const painter = await imageProvider(cluster.far);
    const [atFar = ''] = await urlsOf(await generate(cluster.far));
    const image = Buffer.from(await (await fetch(atFar)).arrayBuffer());
    const url = atFar.replace(cluster.far.url, cluster.near.url);
    const [near, far] = await Promise.all([fetch(url), fetch(atFar)]);
    expect(Buffer.from(await near.arrayBuffer())).toEqual(image);
    for (const name of ['content-type', 'content-length', 'etag', 'accept-ranges'])
      expect(near.headers.get(name)).toBe(far.headers.get(name));
    const part = await fetch(url, { headers: { range: 'bytes=8-19' } });
    expect(part.status).toBe(206);
    expect(Buffer.from(await part.arrayBuffer())).toEqual(image.subarray(8, 20));
    const head = await fetch(url, { method: 'HEAD' });
    expect(head.headers.get('content-length')).toBe(String(image.length));
    expect((await fetch(url, { headers: { 'if-none-match': near.headers.get('etag') ?? '' } })).status).toBe(304);
    painter.close();
  });

  it('shows a provider once, by its newest registration, while the provider moves', async () => {
    const { enclave, providerId } = provider;
    const moved = await cluster.near.provider({ enclave, serial: 'FARSERIAL1' });
    for (const coordinator of [cluster.near, cluster.far]) {
      const { providers } = (await (await coordinator.get('/v1/providers/attestation')).json()) as {
        providers: { provider_id: string; last_challenge: { session_id: string } }[];
      };
      expect(providers.map(({ provider_id, last_challenge }) => [provider_id, last_challenge.session_id])).toEqual([
        [providerId, moved.sessionId],
      ]);
    }
  });
});
