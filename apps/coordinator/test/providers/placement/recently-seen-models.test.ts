/** A model whose providers are all gone for the moment is not unknown: clients are asked to retry. */
import { afterEach, describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../../../../../test/support/temporary-directory.js';
import { RECENTLY_SEEN_MS, RecentlySeenModels } from '../../../src/providers/placement/recently-seen-models.js';
import { errorOf, type Harness, MODEL, startHarness } from '../../support/harness.js';

const HOUR_MS = 3_600_000;

describe('a model without a provider', () => {
  let harness: Harness;
  afterEach(() => harness.close());

  const gone = async (): Promise<void> => {
    await harness.until(async () => ((await (await harness.get('/v1/models')).json()) as { data: unknown[] }).data.length === 0);
  };
  const expectComeBack = async (response: Response): Promise<void> => {
    expect([response.status, (await errorOf(response)).code]).toEqual([503, 'no_provider']);
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
  };

  it('is unknown when no provider ever served it', async () => {
    harness = await startHarness();
    const response = await harness.chat();
    expect([response.status, (await errorOf(response)).code]).toEqual([404, 'model_not_found']);
  });

  it('may be requested again after its last provider has left, in every format, and costs nothing', async () => {
    harness = await startHarness();
    const provider = await harness.provider();
    const before = await harness.money();
    provider.close();
    await gone();
    await expectComeBack(await harness.chat());
    const body = { model: MODEL, max_tokens: 5, messages: [{ role: 'user', content: 'x' }] };
    const overloaded = await harness.post('/v1/messages', body);
    expect([overloaded.status, ((await overloaded.json()) as { error: { type: string } }).error.type]).toEqual([529, 'overloaded_error']);
    expect(await harness.money()).toEqual(before);
    expect((await harness.chat({ model: 'no/such' })).status).toBe(404);
    await harness.provider();
    expect((await harness.chat()).status).toBe(200);
  });

  it('is known from earlier jobs after a restart', async () => {
    const dataDir = temporaryDirectory('expected-models');
    harness = await startHarness({ config: { dataDir } });
    const provider = await harness.provider();
    expect((await harness.chat()).status).toBe(200);
    provider.close();
    await harness.app.close(50);
    harness = await startHarness({ config: { dataDir } });
    await expectComeBack(await harness.chat());
    expect((await harness.chat({ model: 'no/such' })).status).toBe(404);
  });

  it('is known when the catalogue lists it', async () => {
    harness = await startHarness();
    const url = `${harness.url}/admin/v1/catalogue/${MODEL}`;
    const headers = { authorization: `Bearer ${harness.adminKey}`, 'content-type': 'application/json' };
    const entry = { display_name: 'One', quantization: '4bit', file_sha256: [] };
    expect((await fetch(url, { method: 'PUT', headers, body: JSON.stringify(entry) })).status).toBeLessThan(300);
    await expectComeBack(await harness.chat());
    expect((await fetch(url, { method: 'DELETE', headers: { authorization: headers.authorization } })).status).toBeLessThan(300);
    expect((await harness.chat()).status).toBe(404);
  });
});

describe('recently seen models', () => {
  let now = 0;
  const serving = new Set<string>();
  let publish: (models: readonly { readonly id: string }[]) => void = () => {};
  const open = (earlier: readonly string[] = []): RecentlySeenModels =>
    new RecentlySeenModels({
      registry: {
        serves: (model) => serving.has(model),
        onCapacity: (listener) => {
          publish = listener;
          return () => {
            publish = () => {};
          };
        },
      },
      catalogue: { entries: new Map() },
      earlier,
      now: () => now,
    });

  it('were served within a day, not merely offered', () => {
    const expected = open(['earlier']);
    serving.add('served');
    publish([{ id: 'served' }, { id: 'offered' }]);
    expect(['earlier', 'served', 'offered'].map((model) => expected.has(model))).toEqual([true, true, false]);
    now += HOUR_MS;
    publish([{ id: 'served' }]);
    now += RECENTLY_SEEN_MS - HOUR_MS;
    expect(['earlier', 'served'].map((model) => expected.has(model))).toEqual([false, true]);
    now += HOUR_MS;
    expect(expected.has('served')).toBe(false);
    expected.close();
  });

  it('are bounded in number; the longest unserved are dropped first', () => {
    const expected = open();
    serving.add('first');
    publish([{ id: 'first' }]);
    for (let model = 0; model < 10_000; model++) {
      serving.add(`m${model}`);
      if (model === 5000) publish([{ id: 'm0' }]);
      publish([{ id: `m${model}` }]);
    }
    expect(['first', 'm0', 'm1', 'm9999'].map((model) => expected.has(model))).toEqual([false, true, true, true]);
    expected.close();
  });
});
