/** List of served models, the page of a model and the home page of visitors, in a browser against a running network. */
import { expect, it } from 'vitest';
import { expectAccessible } from '../support/console/accessible.js';
import { describeInBrowser } from '../support/console/browser.js';
import { expectStill, openPage, screenshot } from '../support/console/open-page.js';
import { newPerson } from '../support/console/people.js';
import type { DemoNetwork } from '../support/demo-network.js';
import { sharedNetwork } from '../support/shared-network.js';

interface Entry {
  readonly id: string;
  readonly name: string;
  readonly metadata: { readonly model_type: string; readonly provider_count: number };
  readonly statistics: object;
}

async function servedModelsOf(network: DemoNetwork): Promise<{ data: Entry[] }> {
  return (await (await fetch(`${network.baseUrl}/v1/network/models`)).json()) as { data: Entry[] };
}

/** Measurements of a model that has been served for two days, with an hour of downtime on the second one. */
const STATISTICS = {
  first_token_ms: { p5: 210, p50: 480, p95: 2600, requests: 1240 },
  tokens_per_second: { p5: 21.4, p50: 38.2, p95: 61, requests: 1102 },
  duration_ms: null,
  uptime: {
    share: 0.97916,
    checks: 2880,
    since: '2026-06-14T00:00:00.000Z',
    days: Array.from({ length: 30 }, (_, index) => ({
      date: new Date(Date.UTC(2026, 4, 17 + index)).toISOString().slice(0, 10),
      share: index < 28 ? null : index === 28 ? 1 : 0.9583,
    })),
  },
};

/** The running list of models, with measured figures for its first text model. */
async function measured(network: DemoNetwork): Promise<{ readonly entry: Entry; readonly data: readonly Entry[] }> {
  const { data } = await servedModelsOf(network);
  const entry = data.find(({ metadata }) => metadata.model_type === 'text');
  if (entry === undefined) throw new Error('no text model is served');
  const changed = { ...entry, statistics: STATISTICS };
  return { entry: changed, data: data.map((one) => (one === entry ? changed : one)) };
}

describeInBrowser('the list of served models', () => {
  it.each([
    ['light', 'wide'],
    ['dark', 'phone'],
  ] as const)('shows prices and measurements, %s and %s', async (theme, width) => {
    const network = await sharedNetwork();
    const { entry, data } = await measured(network);
    const page = await openPage('/models', {
      theme,
      width,
      prepare: (context) => context.route('**/v1/network/models', (route) => route.fulfill({ json: { data } })),
    });
    const row = page.getByRole('row').filter({ has: page.getByRole('link', { name: entry.name, exact: true }) });
    await row.getByText('480 ms').waitFor();
    const text = await row.textContent();
    for (const figure of ['$0.05', '$0.20', '38.2', '97.91%']) expect(text).toContain(figure);
    await screenshot(page, `models-measured-${width}-${theme}`);
    await expectAccessible(page);
    await expectStill(page);
  });

  it('filters by text and type, and stores both in the URL', async () => {
    const network = await sharedNetwork();
    const { entry, data } = await measured(network);
    const others = [
      { ...entry, id: 'org/vectors', name: 'Vectors', metadata: { ...entry.metadata, model_type: 'embedding' } },
      {
        ...entry,
        id: 'org/painter',
        name: 'Painter',
        metadata: { ...entry.metadata, model_type: 'image', sizes: ['512x512'], max_images: 2 },
      },
    ];
    const page = await openPage('/models', {
      prepare: (context) => context.route('**/v1/network/models', (route) => route.fulfill({ json: { data: [...data, ...others] } })),
    });
    await page.getByRole('link', { name: 'Painter' }).waitFor();
    await page.getByRole('button', { name: 'Embeddings' }).click();
    await page.getByRole('link', { name: 'Painter' }).waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'Vectors' }).waitFor();
    await expect.poll(() => new URL(page.url()).searchParams.get('type')).toBe('embedding');
    await page.getByRole('searchbox', { name: 'Search' }).fill('no such model');
    await page.getByText('No models match').waitFor();
    await expect.poll(() => new URL(page.url()).searchParams.get('search')).toBe('no such model');
  });

  it('opens the page of a model by keyboard, also with a slash in its id', async () => {
    const network = await sharedNetwork();
    const { entry, data } = await measured(network);
    const slashed = { ...entry, id: 'org/slashed model', name: 'Slashed' };
    const page = await openPage('/models', {
      prepare: (context) => context.route('**/v1/network/models', (route) => route.fulfill({ json: { data: [...data, slashed] } })),
    });
    await page.getByRole('link', { name: 'Slashed' }).press('Enter');
    await page.getByRole('heading', { name: 'Slashed', level: 1 }).waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'Slashed', level: 1 }).waitFor();
    await page.getByText('org/slashed model').first().waitFor();
  });
});

describeInBrowser('the page of a model', () => {
  it.each([
    ['light', 'phone'],
    ['dark', 'wide'],
  ] as const)('shows percentiles, uptime, machines and features, %s and %s', async (theme, width) => {
    const network = await sharedNetwork();
    const { entry, data } = await measured(network);
    const page = await openPage(`/models/${encodeURIComponent(entry.id)}`, {
      theme,
      width,
      prepare: (context) => context.route('**/v1/network/models', (route) => route.fulfill({ json: { data } })),
    });
    await page.getByText('95% within 2.6 s, 1,240 requests').waitFor();
    await page.getByText('5% of requests below 21.4').waitFor();
    await page.getByText('2,880 checks').waitFor();
    const days = page.getByRole('list', { name: 'Uptime per day, the oldest first' }).getByRole('listitem');
    await expect.poll(() => days.count()).toBe(30);
    expect(await days.last().textContent()).toBe('Jun 15: 95.83%');
    expect(await days.first().textContent()).toBe('May 17: no checks');
    await screenshot(page, `model-measured-${width}-${theme}`);
    await expectAccessible(page);
    await expectStill(page);
  });

  it('has requests with the id of the model, which the network answers', async () => {
    const network = await sharedNetwork();
    const person = await newPerson(network, { deposit: 1_000_000 });
    const { secret } = await person.call<{ secret: string }>('POST', '/console/v1/keys', { name: 'catalogue' });
    const page = await openPage(`/models/${encodeURIComponent(network.model)}`);
    for (const language of ['Python', 'JavaScript', 'curl']) {
      await page.getByRole('tab', { name: language }).click();
      await page.getByRole('tabpanel', { name: language }).getByText(network.model).waitFor();
    }
    const code = (await page.getByRole('tabpanel', { name: 'curl' }).locator('code').textContent()) ?? '';
    const body = /-d '(?<body>.*)'$/s.exec(code)?.groups?.body ?? '';
    const response = await network.post(
      '/v1/chat/completions',
      { ...(JSON.parse(body) as object), max_tokens: 4 },
      { headers: { authorization: `Bearer ${secret}` } },
    );
    expect(response.status, await response.text()).toBe(200);
  });

  it('says that a model is not served now', async () => {
    const page = await openPage('/models/no%2Fsuch-model');
    await page.getByRole('heading', { name: 'This model is not available now', level: 1 }).waitFor();
    await page.getByText('“no/such-model”').waitFor();
    await expectAccessible(page);
  });
});

describeInBrowser('the home page', () => {
  it('verifies a machine in the browser without a click, and leads to an account and a key', async () => {
    const page = await openPage('/');
    const card = page.getByRole('region', { name: 'Verified live' });
    await card.getByText('The signatures are valid, but this machine is a simulation').waitFor();
    await expect.poll(() => card.getByRole('status').textContent()).toMatch(/^\d+ claims recomputed .*, 0 contradicted\.$/);
    await page.getByRole('main').getByRole('link', { name: 'Get an API key' }).click();
    await page.getByRole('heading', { name: 'Create an account' }).waitFor();
  });

  it('says so when the record of the machine contradicts its evidence', async () => {
    const page = await openPage('/', {
      prepare: (context) =>
        context.route('**/v1/providers/attestation*', async (route) => {
          const response = await route.fetch();
          const feed = (await response.json()) as { providers: { memory_gb: number }[] };
          await route.fulfill({ response, json: { ...feed, providers: feed.providers.map((record) => ({ ...record, memory_gb: 4096 })) } });
        }),
    });
    await page.getByText('Failed: the evidence contradicts this record').waitFor();
    await screenshot(page, 'home-contradicted');
    await expectAccessible(page);
  });

  it('has an empty state without machines and models', async () => {
    const network = await sharedNetwork();
    const stats = (await (await fetch(`${network.baseUrl}/v1/stats`)).json()) as object;
    const page = await openPage('/', {
      width: 'phone',
      prepare: async (context) => {
        await context.route('**/v1/stats', (route) => route.fulfill({ json: { ...stats, providers: [], models: [] } }));
        await context.route('**/v1/network/models', (route) => route.fulfill({ json: { data: [] } }));
      },
    });
    await page.getByText('No machine is connected').waitFor();
    await page.getByText('No models available').waitFor();
    await expectAccessible(page);
  });

  it('shows signed-in people the network overview', async () => {
    const person = await newPerson(await sharedNetwork());
    const page = await openPage('/', { signedInAs: person });
    await page.getByRole('heading', { name: 'Network overview', level: 1 }).waitFor();
    await page.waitForURL('**/network');
  });
});
