/** The model list when providers invent names: limited per provider, per owner and in total, and returned in pages. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  listedModels,
  MAX_LISTED_MODELS,
  MAX_NAMES_PER_OWNER,
  MAX_NAMES_PER_PROVIDER,
  MAX_NAMES_WITHOUT_OWNER,
} from '../../../src/providers/placement/listed-models.js';
import { errorOf, type Harness, MODEL, startHarness } from '../../support/harness.js';
import type { ScriptedProvider } from '../../support/scripted-provider.js';

interface Listed {
  readonly data: readonly { readonly id: string }[];
  readonly has_more?: boolean;
  readonly first_id?: string | null;
  readonly last_id?: string | null;
}

const NAMES_OF_STRANGER = 64;
const STRANGERS = 10;

describe('with unproven providers that serve invented models', () => {
  let harness: Harness;
  let honest: ScriptedProvider;
  beforeAll(async () => {
    harness = await startHarness();
    honest = await harness.provider();
    expect((await harness.chat()).status).toBe(200);
    for (let stranger = 0; stranger < STRANGERS; stranger++) {
      const models = Array.from({ length: NAMES_OF_STRANGER }, (_, index) => `a-stranger/${stranger}-${index}`);
      await harness.provider({ models });
    }
  });
  afterAll(() => harness.close());

  const list = async (query = '', headers: Record<string, string> = {}): Promise<Listed> => {
    const response = await fetch(`${harness.url}/v1/models${query}`, {
      headers: { authorization: `Bearer ${harness.apiKey}`, ...headers },
    });
    expect(response.status).toBe(200);
    return (await response.json()) as Listed;
  };

  it('the list has the model of the proven provider and a bounded number of theirs', async () => {
    const { data, has_more } = await list();
    expect(data.map(({ id }) => id)).toContain(MODEL);
    expect(data).toHaveLength(MAX_NAMES_WITHOUT_OWNER + 1);
    expect(has_more).toBeUndefined();
    // Unlisted models are still served.
    const unlisted = Array.from({ length: NAMES_OF_STRANGER }, (_, index) => `a-stranger/9-${index}`).find(
      (name) => !data.some(({ id }) => id === name),
    ) as string;
    expect((await harness.get(`/v1/models/${unlisted}`)).status).toBe(200);
    expect((await harness.chat({ model: unlisted })).status).toBe(200);
  });

  it('only listed names are suggested for an unknown name', async () => {
    const listed = new Set((await list()).data.map(({ id }) => id));
    const isSuggested = new Map<boolean, boolean>();
    for (let stranger = 0; stranger < STRANGERS; stranger++) {
      for (const name of [`a-stranger/${stranger}-0`, `a-stranger/${stranger}-63`]) {
        const { message } = await errorOf(await harness.get(`/v1/models/${name}x`));
        const suggested = [...message.matchAll(/"([^"]+)"/g)].slice(1).map(([, quoted]) => quoted as string);
        for (const id of suggested) isSuggested.set(listed.has(id), true);
      }
    }
    expect([isSuggested.get(true), isSuggested.get(false)]).toEqual([true, undefined]);
  });

  it('statistics and the attestation feed list the same models', async () => {
    const stats = (await (await harness.get('/v1/stats', null)).json()) as {
      models: unknown[];
      providers: { id: string; models: string[] }[];
    };
    const feed = (await (await harness.get('/v1/providers/attestation', null)).json()) as {
      providers: { provider_id: string; models: string[] }[];
    };
    expect(stats.models).toHaveLength((await list()).data.length);
    for (const { models } of [...stats.providers, ...feed.providers]) expect(models.length).toBeLessThanOrEqual(MAX_NAMES_PER_PROVIDER);
    expect(feed.providers.find(({ provider_id }) => provider_id === honest.providerId)?.models).toEqual([MODEL]);
    expect(stats.providers.find(({ id }) => id === honest.providerId)?.models).toEqual([MODEL]);
  });

  it('pages follow each other forwards and backwards, in both formats', async () => {
    const whole = (await list()).data.map(({ id }) => id);
    for (const headers of [{}, { 'anthropic-version': '2023-06-01' }]) {
      const forwards: string[] = [];
      for (let after = ''; ; ) {
        const page = await list(`?limit=100${after}`, headers);
        forwards.push(...page.data.map(({ id }) => id));
        expect([page.first_id, page.last_id]).toEqual([page.data.at(0)?.id, page.data.at(-1)?.id]);
        if (page.has_more !== true) break;
        after = `&after_id=${encodeURIComponent(page.last_id ?? '')}`;
      }
      expect(forwards).toEqual(whole);
      const last = whole.at(-1) as string;
      const before = await list(`?limit=2&before_id=${encodeURIComponent(last)}`, headers);
      expect([before.data.map(({ id }) => id), before.has_more]).toEqual([whole.slice(-3, -1), true]);
    }
    expect((await list('?beta=true')).has_more).toBeUndefined();
  });

  it('a bad page is refused, and the parameter named', async () => {
    for (const [query, param] of [
      ['limit=0', 'limit'],
      ['limit=1001', 'limit'],
      ['limit=many', 'limit'],
      ['after_id=', 'after_id'],
      ['after_id=a&before_id=b', 'before_id'],
    ]) {
      const refused = await harness.get(`/v1/models?${query}`);
      expect([query, refused.status, (await errorOf(refused)).param]).toEqual([query, 400, param]);
    }
  });
});

it('names are limited per provider, per owner and in total; proven providers come first', () => {
  const names = (prefix: string, count: number, sessions: readonly string[]) =>
    Array.from({ length: count }, (_, index) => ({ id: `${prefix}-${index}`, sessions }));
  const rules = {
    isProven: (session: string) => session.startsWith('proved'),
    ownerOf: (session: string) => (session.startsWith('owned') ? 'owner' : null),
  };
  const count = (candidates: Parameters<typeof listedModels<string>>[0]) => listedModels(candidates, rules).size;
  expect(count(names('a', 64, ['stranger']))).toBe(MAX_NAMES_PER_PROVIDER);
  expect(count([0, 1, 2, 3, 4, 5].flatMap((provider) => names(`a${provider}`, 64, [`owned-${provider}`])))).toBe(MAX_NAMES_PER_OWNER);
  const many = Array.from({ length: 40 }, (_, provider) => names(`p${provider}`, 64, [`proved-${provider}`])).flat();
  expect(count(many)).toBe(MAX_LISTED_MODELS);
  // A name that two providers serve is counted for one of them.
  expect(count(names('b', 2 * MAX_NAMES_PER_PROVIDER, ['one', 'other']))).toBe(2 * MAX_NAMES_PER_PROVIDER);
  const listed = listedModels([...names('a', 1200, ['stranger']), ...names('z', MAX_LISTED_MODELS, ['proved'])], rules);
  expect([...listed].every((id) => id.startsWith('z'))).toBe(true);
});
