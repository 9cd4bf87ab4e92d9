/** Catalogue: the operator's entries decide which model files a provider may serve under an id. Providers learn which were refused. */
import { Compile } from 'typebox/compile';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { CatalogueRepository } from '../../../src/database/providers/catalogue-repository.js';
import { CATALOGUE_SCHEMAS } from '../../../src/routes/inference/catalogue-schemas.js';
import { describeDatabases, type TestDatabase } from '../../support/databases.js';
import { errorOf, type Harness, MODEL, startHarness } from '../../support/harness.js';
import type { ScriptedProvider } from '../../support/scripted-provider.js';

const GOOD = 'ab'.repeat(32);
const OTHER = 'cd'.repeat(32);
const ENTRY = { display_name: 'Model One', quantization: '4bit', file_sha256: [GOOD], min_memory_bytes: 8_000_000_000 };

describeDatabases('the catalogue', (fresh) => {
  let base: TestDatabase;
  let harness: Harness;

  const start = (config: object = {}) => startHarness({ config: { ...base.config, ...config } });
  beforeEach(async () => {
    base = await fresh();
    harness = await start();
  });
  afterEach(async () => {
    await harness.close();
    await base.remove();
  });

  const put = (id: string, body: unknown, key = harness.adminKey) =>
    fetch(`${harness.url}/admin/v1/catalogue/${id}`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const remove = (id: string) =>
    fetch(`${harness.url}/admin/v1/catalogue/${id}`, { method: 'DELETE', headers: { authorization: `Bearer ${harness.adminKey}` } });
  const served = async () =>
    ((await (await harness.get('/v1/models')).json()) as { data: { id: string; metadata: { display_name: string } }[] }).data;
  const refusals = (provider: ScriptedProvider) =>
    provider.received.flatMap((message) =>
      message.type === 'models_refused' ? [message.models.map(({ id, reason }) => [id, reason])] : [],
    );
  const offer = (provider: ScriptedProvider, id: string, sha256?: string, type = 'text') =>
    provider.send({
      type: 'models',
      models: [{ ...provider.offers([id])[0], model_type: type, ...(sha256 === undefined ? {} : { file_sha256: sha256 }) }],
    });

  it('is public, and changed only by operators', async () => {
    const set = await put(MODEL, { ...ENTRY, prices: { prompt_per_million: 7, completion_per_million: 9 } });
    expect(set.status).toBe(200);
    const response = await harness.get('/v1/catalogue', null);
    expect(response.headers.get('access-control-allow-origin')).toBe('*');
    const body = await response.json();
    expect([...Compile(CATALOGUE_SCHEMAS.Catalogue).Errors(body)]).toEqual([]);
    expect(body).toMatchObject({
      exclusive: false,
      data: [
        {
          id: MODEL,
          model_type: 'text',
          ...ENTRY,
          prices: { prompt_per_million: 7, cached_per_million: 7, completion_per_million: 9, per_image: 0 },
        },
      ],
    });
    expect((await put(MODEL, ENTRY, harness.apiKey)).status).toBe(403);
    // Hashes are stored without duplicates. Then the entry is deleted.
    expect(await (await put(MODEL, { ...ENTRY, file_sha256: [OTHER, GOOD, OTHER] })).json()).toMatchObject({ file_sha256: [GOOD, OTHER] });
    expect((await remove(MODEL)).status).toBe(200);
    expect((await remove(MODEL)).status).toBe(404);
    expect(await (await harness.get('/v1/catalogue', null)).json()).toMatchObject({ data: [] });
  });

  it('refuses invalid changes, names the field, and leaves the entry unchanged', async () => {
    await put(MODEL, ENTRY);
    for (const [body, param] of [
      [{ ...ENTRY, file_sha256: ['abc'] }, 'file_sha256[0]'],
      [{ ...ENTRY, display_name: '<b>' }, 'display_name'],
      [{ quantization: '4bit' }, 'display_name'],
      [{ ...ENTRY, prices: { prompt_per_million: -1, completion_per_million: 0 } }, 'prices.prompt_per_million'],
      [{ ...ENTRY, prices: { prompt_per_million: 1, cached_per_million: 2, completion_per_million: 0 } }, 'prices.cached_per_million'],
    ] as const) {
      const response = await put(MODEL, body);
      expect(response.status).toBe(400);
      expect((await errorOf(response)).param).toBe(param);
    }
    expect((await put('two%20words', ENTRY)).status).toBe(400);
    expect(await (await harness.get('/v1/catalogue', null)).json()).toMatchObject({ data: [ENTRY] });
  });

  it('adds no price where the prices of a change equal the current ones', async () => {
    const change = (display_name: string, prompt_per_million = 7) =>
      put(MODEL, { ...ENTRY, display_name, prices: { prompt_per_million, completion_per_million: 9 } });
    for (const name of ['Model One', 'Model 1']) expect((await change(name)).status).toBe(200);
    expect(await (await harness.get('/v1/catalogue', null)).json()).toMatchObject({ data: [{ display_name: 'Model 1' }] });
    expect(await harness.app.prices.history(MODEL)).toHaveLength(1);
    expect((await change('Model 1', 8)).status).toBe(200);
    expect(await harness.app.prices.history(MODEL)).toHaveLength(2);
  });

  it('stores neither the entry nor the price of a change that fails', async () => {
    const change = (display_name: string, prompt_per_million: number) =>
      put(MODEL, { ...ENTRY, display_name, prices: { prompt_per_million, completion_per_million: 9 } });
    expect((await change('Model One', 7)).status).toBe(200);
    const before = await (await harness.get('/v1/catalogue', null)).json();
    const { schema } = harness.app.database;
    for (const table of ['prices', 'catalogue_files']) {
      await schema.alterTable(table).renameTo(`${table}_away`).execute();
      const failed = await change('Other name', 8);
      await schema.alterTable(`${table}_away`).renameTo(table).execute();
      expect([table, failed.status]).toEqual([table, 500]);
      expect((await harness.app.prices.history(MODEL)).length).toBe(1);
    }
    // Also reads the catalogue again.
    expect((await remove('test/other')).status).toBe(404);
    expect(await (await harness.get('/v1/catalogue', null)).json()).toEqual(before);
  });

  it('rejects offers with other files, reports the reason, and keeps the session', async () => {
    await put(MODEL, ENTRY);
    const provider = await harness.provider({ models: [MODEL, 'test/unlisted'] });
    await provider.next('models_refused');
    expect(refusals(provider)).toEqual([[[MODEL, 'hash_missing']]]);
    expect((await served()).map(({ id }) => id)).toEqual(['test/unlisted']);

    offer(provider, MODEL, OTHER);
    await harness.until(() => refusals(provider).length === 2);
    expect(refusals(provider).at(-1)).toEqual([[MODEL, 'hash_differs']]);
    expect(await served()).toEqual([]);
    expect((await harness.chat()).status).toBe(503);

    offer(provider, MODEL, GOOD, 'embedding');
    await harness.until(() => refusals(provider).length === 3);
    expect(refusals(provider).at(-1)).toEqual([[MODEL, 'other_type']]);

    offer(provider, MODEL, GOOD);
    await harness.until(() => refusals(provider).length === 4);
    expect(refusals(provider).at(-1)).toEqual([]);
    expect(await served()).toMatchObject([{ id: MODEL, metadata: { display_name: 'Model One' } }]);
    expect((await harness.chat()).status).toBe(200);

    // A change of the catalogue applies to connected providers at once.
    await put(MODEL, { ...ENTRY, file_sha256: [OTHER] });
    await harness.until(() => refusals(provider).length === 5);
    expect(refusals(provider).at(-1)).toEqual([[MODEL, 'hash_differs']]);
    expect(await served()).toEqual([]);
    await remove(MODEL);
    await harness.until(() => refusals(provider).length === 6);
    expect((await served()).map(({ id }) => id)).toEqual([MODEL]);
    expect(provider.rejection).toBeUndefined();
  });

  it('can be exclusive', async () => {
    await harness.close();
    harness = await start({ catalogueOnly: true });
    const provider = await harness.provider({ models: [MODEL] });
    await provider.next('models_refused');
    expect(refusals(provider)).toEqual([[[MODEL, 'not_catalogued']]]);
    expect(await (await harness.get('/v1/catalogue', null)).json()).toMatchObject({ exclusive: true });
    await put(MODEL, { display_name: 'Any file', quantization: '8bit' });
    await harness.until(() => refusals(provider).length === 2);
    expect(refusals(provider).at(-1)).toEqual([]);
    expect(await served()).toHaveLength(1);
  });

  it('reaches other coordinators on the same database', async () => {
    let changes = 0;
    const book = await CatalogueRepository.open({ database: harness.app.database, now: Date.now, onError: () => {} });
    book.onChange = () => changes++;
    try {
      await put(MODEL, ENTRY);
      await book.refresh();
      await book.refresh();
      expect(book.entries.get(MODEL)?.fileSha256).toEqual([GOOD]);
      expect(changes).toBe(1);
    } finally {
      book.close();
    }
  });
});
