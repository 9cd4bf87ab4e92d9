import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTwoCoordinators, type TwoCoordinators } from '../support/cluster-harness.js';
import { errorOf, MODEL, until } from '../support/harness.js';
import type { ScriptedProvider } from '../support/scripted-provider.js';
import { postSealed, seal } from '../support/sealed-calls.js';

const CANARY = 'canary-7d1f0c2e';
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC';

let cluster: TwoCoordinators;

beforeAll(async () => {
  cluster = await startTwoCoordinators();
});
afterAll(() => cluster.close());

/** A provider at the far coordinator that the near one knows. */
async function farProvider(options: Parameters<TwoCoordinators['far']['provider']>[0]): Promise<ScriptedProvider> {
  const provider = await cluster.far.provider(options);
  for (const model of provider.options.models ?? []) await until(() => cluster.near.app.cluster.servingAtPeers(model) > 0);
  return provider;
}

const chat = (body: Record<string, unknown> = {}, signal?: AbortSignal) => cluster.near.chat(body, signal === undefined ? {} : { signal });

describe('a client of one coordinator', () => {
  test('gets the verified answer of a provider at another, and pays', async () => {
    const provider = await farProvider({ models: ['far/answers'], serial: 'FAR0000001' });
    const before = await cluster.near.money();
    const response = await chat({ model: 'far/answers' });
    expect(response.status).toBe(200);
    expect(response.headers.get('x-provider-id')).toBe(provider.providerId);
    expect(response.headers.get('x-provider-serial')).toBe('FAR0000001');
    expect(response.headers.get('x-se-signature')).not.toBeNull();
    const body = (await response.json()) as { choices: { message: { content: string } }[] };
    expect(body.choices[0]?.message.content).not.toBe('');
    const after = await cluster.near.money();
    expect(after.balance).toBeLessThan(before.balance);
    expect(after.reserved).toBe(0);
    // The coordinator with the provider's connection serves no client of its own.
    expect(cluster.far.jobLines()).toEqual([]);
    expect(cluster.near.jobLines()).toHaveLength(1);
  });

  test('gets a stream to its end', async () => {
    await farProvider({ models: ['far/streams'] });
    const response = await chat({ model: 'far/streams', stream: true });
    const text = await response.text();
    expect(response.status).toBe(200);
    expect(text).toContain('se_signature');
    expect(text.trimEnd().endsWith('data: [DONE]')).toBe(true);
  });

  test('reaches a provider by its serial number and by its id', async () => {
    const provider = await farProvider({ models: ['far/named'], serial: 'FARNAMED01' });
    await farProvider({ models: ['far/named'], serial: 'FARNAMED02' });
    const bySerial = await chat({ model: 'far/named', provider_serial: 'FARNAMED01' });
    expect(bySerial.status).toBe(200);
    expect(bySerial.headers.get('x-provider-id')).toBe(provider.providerId);
    const byId = await cluster.near.chat({ model: 'far/named' }, { headers: { 'x-inference-provider-id': provider.providerId } });
    expect(byId.headers.get('x-provider-id')).toBe(provider.providerId);
    const unknown = { model: 'far/named', provider_serial: 'NOSUCHSERIAL' };
    const refused = await chat(unknown);
    expect(refused.ok).toBe(false);
    expect(refused.status).toBe((await cluster.far.chat(unknown)).status);
  });

  test('asks a provider about a large image, and is told which provider reads none', async () => {
    const sighted = await farProvider({ models: ['far/sees'], vision: { max_images: 1, max_image_tokens: 100 } });
    await farProvider({ models: ['far/sees'], serial: 'FARBLIND01' });
    // Padded after the last PNG chunk, so that the request needs several frames.
    const data = Buffer.concat([Buffer.from(PNG, 'base64'), Buffer.alloc(2 ** 20)]).toString('base64');
    const content = [{ type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } }];
    const body = { model: 'far/sees', messages: [{ role: 'user', content }] };
    const response = await chat(body);
    expect([response.status, response.headers.get('x-provider-id')]).toEqual([200, sighted.providerId]);
    const blind = await chat({ ...body, provider_serial: 'FARBLIND01' });
    expect([blind.status, await errorOf(blind)]).toEqual([400, expect.objectContaining({ param: 'messages[0].content[0]' })]);
    // Each coordinator knows one of the two; a third, in the last list, is connected nowhere and may read images.
    await cluster.near.provider({ models: ['far/sees'], serial: 'NEARBLIND1' });
    const only = ['FARBLIND01', 'NEARBLIND1'];
    for (const names of [only, only.toReversed()]) {
      const both = await chat({ ...body, provider: { only: names } });
      expect([both.status, await errorOf(both)]).toEqual([
        400,
        expect.objectContaining({
          param: 'messages[0].content[0]',
          message: expect.stringContaining('that provider.only names reads an image'),
        }),
      ]);
    }
    const withAbsent = await chat({ ...body, provider: { only: [...only, '0'.repeat(32)] } });
    expect([withAbsent.status, (await errorOf(withAbsent)).code]).toEqual([503, 'provider_not_available']);
    expect((await chat({ ...body, provider: { only: [...only, sighted.providerId] } })).headers.get('x-provider-id')).toBe(
      sighted.providerId,
    );
  });

  test.each(['far', 'near'] as const)('is told that the only candidate, at the %s coordinator, states no image sizes', async (at) => {
    const model = `${at}/draws`;
    const image = { sizes: ['64x48'], max_images: 4 };
    const register: ScriptedProvider['options']['register'] = (message) => ({
      ...message,
      models: message.models.map(({ image: _, ...offer }) => offer),
    });
    const options = { models: [model], image, register };
    const candidate = await (at === 'far' ? farProvider(options) : cluster.near.provider(options));
    const sealed = seal([candidate], { endpoint: '/v1/images/generations', model, images: 1 });
    const response = await postSealed(cluster.near, sealed.bytes);
    const error = { code: 'provider_not_available', param: 'context.image_size' };
    expect([response.status, await errorOf(response)]).toEqual([503, expect.objectContaining(error)]);
    expect(candidate.sealedJobs.size).toBe(0);
  });

  test('gets another provider when the first breaks its job', async () => {
    let broken = 0;
    const refuse = await farProvider({
      models: ['far/retried'],
      onJob: (job) => {
        broken++;
        job.fail({ code: 'engine_failed' });
      },
    });
    const good = await farProvider({ models: ['far/retried'] });
    for (let count = 0; count < 6; count++) {
      const response = await chat({ model: 'far/retried' });
      expect(response.status).toBe(200);
      expect(response.headers.get('x-provider-id')).toBe(good.providerId);
    }
    expect(refuse.providerId).not.toBe(good.providerId);
    expect(broken).toBeLessThanOrEqual(6);
  });

  test('waits for a busy provider at another coordinator', async () => {
    const release: (() => void)[] = [];
    await farProvider({
      models: ['far/queued'],
      slots: 1,
      onJob: (job) =>
        new Promise<void>((resolve) => {
          release.push(() => {
            void job.answerHonestly();
            resolve();
          });
        }),
    });
    const first = chat({ model: 'far/queued' });
    await until(() => release.length === 1);
    const second = chat({ model: 'far/queued' });
    await until(() => cluster.far.app.providers.models.slotCount('far/queued') === 1);
    release.shift()?.();
    expect((await first).status).toBe(200);
    await until(() => release.length === 1);
    release.shift()?.();
    expect((await second).status).toBe(200);
  });

  test('whose provider is gone gets a clean error, and pays nothing', async () => {
    const provider = await farProvider({ models: ['far/lost'], onJob: () => {} });
    const before = await cluster.near.money();
    const response = chat({ model: 'far/lost' });
    await until(() => provider.jobs.size === 1);
    provider.close();
    expect((await response).status).toBeGreaterThanOrEqual(500);
    await until(async () => (await cluster.near.money()).reserved === 0);
    expect((await cluster.near.money()).balance).toBe(before.balance);
  });

  test('who leaves frees the slot at the owner', async () => {
    const provider = await farProvider({ models: ['far/left'], slots: 1, onJob: () => {} });
    const leaving = new AbortController();
    const response = chat({ model: 'far/left' }, leaving.signal).catch(() => null);
    await until(() => provider.jobs.size === 1);
    leaving.abort();
    await response;
    await until(() => provider.received.some(({ type }) => type === 'cancel'));
    await until(() => cluster.far.app.providers.snapshot(provider.providerId)?.usedSlots === 0);
  });
});

test('nothing that passes NATS holds the prompt or the answer', async () => {
  const seen: Buffer[] = [];
  const { connect } = await import('node:net');
  const spy = connect(Number(new URL(cluster.nats.url).port), '127.0.0.1');
  spy.on('data', (bytes) => seen.push(bytes));
  spy.write('CONNECT {"verbose":false,"pedantic":false,"lang":"test","version":"1","protocol":1}\r\nSUB > 1\r\nPING\r\n');
  await until(() => Buffer.concat(seen).includes('PONG'));
  await farProvider({ models: ['far/secret'] });
  const messages = [{ role: 'user', content: `${CANARY} asked` }];
  const response = await chat({ model: 'far/secret', messages, stream: true });
  const answer = await response.text();
  expect(answer).toContain('[DONE]');
  const content = /"delta":\{"content":"([^"]{4,})"/.exec(answer)?.[1] ?? '';
  expect(content).not.toBe('');
  // The NATS server answers PING only after it has sent all earlier messages.
  spy.write('PING\r\n');
  await until(() => Buffer.concat(seen).toString('latin1').split('PONG').length === 3);
  const traffic = Buffer.concat(seen);
  expect(traffic.includes('coordinator.far.in.near')).toBe(true);
  expect(traffic.includes(CANARY)).toBe(false);
  expect(traffic.includes(`"content":"${content}"`)).toBe(false);
  spy.destroy();
  for (const line of [...cluster.near.log, ...cluster.far.log]) expect(line).not.toContain(CANARY);
});

test('a model of a lost coordinator is unavailable, and comes back with the coordinator', async () => {
  await farProvider({ models: [MODEL] });
  expect((await chat()).status).toBe(200);
  await cluster.nats.stop('SIGKILL');
  await until(() => cluster.near.app.cluster.servingAtPeers(MODEL) === 0);
  expect((await chat()).status).toBe(503);
  await cluster.nats.start();
  await until(() => cluster.near.app.cluster.servingAtPeers(MODEL) > 0);
  expect((await chat()).status).toBe(200);
});
