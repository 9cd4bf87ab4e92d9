import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MODEL, until } from '../support/harness.js';
import type { ScriptedProvider } from '../support/scripted-provider.js';
import { startTwoCoordinators, type TwoCoordinators } from './two-coordinators.js';

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
  return { status: near.status, near: await near.json(), far: await far.json() };
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
    const token = provider.received.flatMap((message) => (message.type === 'registered' ? (message.session_token ?? []) : []))[0] ?? '';
    const { status, near } = await read('/v1/providers/me', token);
    expect(status).toBe(200);
    expect(near.provider_id).toBe(provider.providerId);
    expect((await cluster.near.get('/v1/providers/me', `${token.slice(0, -2)}AA`)).status).toBe(401);
    expect((await cluster.near.get('/v1/providers/me', `${'0'.repeat(32)}${token.slice(32)}`)).status).toBe(401);
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

  it('reads the receipt of an answer at once, whichever coordinator gave it', async () => {
    const response = await cluster.near.chat({}, { headers: { authorization: `Bearer ${cluster.far.apiKey}` } });
    expect(response.status).toBe(200);
    await response.text();
    const jobId = response.headers.get('x-job-id') ?? response.headers.get('x-request-id') ?? '';
    const { near, far } = await read(`/v1/receipts/${jobId}`);
    expect(near.object).toBe('inference.receipt');
    expect(far).toEqual(near);
  });
});
