/** Requests of a client in the console: sorted list, failed requests, one request with its receipt, and the fitted chart. */
import OpenAI from 'openai';
import { beforeAll, expect, it } from 'vitest';
import { expectAccessible } from '../support/console/accessible.js';
import { describeInBrowser } from '../support/console/browser.js';
import { expectStill, LOOKS, openPage, screenshot } from '../support/console/open-page.js';
import { newPerson, type Person } from '../support/console/people.js';
import type { DemoNetwork } from '../support/demo-network.js';
import { sharedNetwork } from '../support/shared-network.js';

describeInBrowser('requests of a client', () => {
  let network: DemoNetwork;
  let person: Person;
  /** Ids of a completed and a failed request. */
  let completed: string;
  let failed: string;

  beforeAll(async () => {
    network = await sharedNetwork();
    person = await newPerson(network, { deposit: 10_000_000 });
    const { secret } = await person.call<{ secret: string }>('POST', '/console/v1/keys', { name: 'laptop', spend_limit_micro_usd: null });
    const client = new OpenAI({ baseURL: `${network.baseUrl}/v1`, apiKey: secret, maxRetries: 0 });
    // At temperature 0 each response runs to its limit.
    const sampling = { temperature: 0, seed: 7 };
    for (const max_tokens of [3, 12, 6])
      await client.completions.create({ model: network.model, prompt: 'The capital of', max_tokens, ...sampling });
    await expect(client.completions.create({ model: 'no/such-model', prompt: 'x' })).rejects.toMatchObject({ status: 404 });
    const firstId = async (path: string): Promise<string> =>
      (await person.call<{ data: { request_id: string }[] }>('GET', path)).data[0]?.request_id ?? '';
    completed = await firstId('/console/v1/usage');
    failed = await firstId('/console/v1/usage/failed');
  });

  it('are sorted by a click on a column, and linked with their order', async () => {
    const page = await openPage('/usage', { signedInAs: person });
    const tokens = () => page.getByRole('row').locator('td:nth-child(4) .number').first();
    await page.getByRole('columnheader', { name: 'Tokens' }).getByRole('button').click();
    await expect.poll(() => new URL(page.url()).searchParams.get('sort')).toBe('tokens-desc');
    await page.locator('th[aria-sort="descending"]', { hasText: 'Tokens' }).waitFor();
    await expect.poll(async () => await tokens().textContent()).toBe(await highest(person, 'desc'));
    await page.getByRole('columnheader', { name: 'Tokens' }).getByRole('button').click();
    await page.locator('th[aria-sort="ascending"]', { hasText: 'Tokens' }).waitFor();
    await expect.poll(async () => await tokens().textContent()).toBe(await highest(person, 'asc'));
    expect(new URL(page.url()).searchParams.get('sort')).toBe('tokens-asc');
    await page.getByLabel('Model', { exact: true }).selectOption(network.model);
    await expect.poll(() => new URL(page.url()).searchParams.get('model')).toBe(network.model);
    expect(new URL(page.url()).searchParams.get('sort')).toBe('tokens-asc');
  });

  it('lead to one request with its receipt, which can be verified', async () => {
    const page = await openPage('/usage', { signedInAs: person });
    await page.getByRole('rowheader').first().getByRole('link').click();
    await page.getByRole('heading', { name: 'Request', exact: true }).waitFor();
    await page.waitForURL(`**/usage/${completed}*`);
    const main = page.locator('main');
    await main.getByText('Plain', { exact: true }).waitFor();
    await main.getByText('length (the token limit was reached)').waitFor();
    await expect.poll(() => main.textContent()).toContain(completed);
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download' }).click();
    expect((await download).suggestedFilename()).toBe(`receipt-${completed}.json`);
    await page.getByRole('link', { name: 'Verify', exact: true }).click();
    await expect.poll(() => page.getByLabel('Text to verify').inputValue()).toContain(completed);
    await page.getByRole('heading', { name: 'Result' }).waitFor();
    await page.getByText('Verified · simulated machine').first().waitFor();
    await screenshot(page, 'usage-verified');
  });

  it('say that mode and finish reason are unknown while the receipt cannot be read', async () => {
    const page = await openPage(`/usage/${completed}`, {
      signedInAs: person,
      expectedErrors: [/500/],
      prepare: (context) => context.route('**/v1/receipts/*', (route) => route.fulfill({ status: 500, body: '' })),
    });
    await page.getByRole('term').filter({ hasText: 'Finish reason' }).waitFor();
    await expect.poll(() => page.locator('main').textContent()).toMatch(/Mode\s*unknown\s*Finish reason\s*unknown/);
  });

  it('have receipts that only their account opens', async () => {
    const stranger = await newPerson(network);
    const page = await openPage(`/verify?receipt=${completed}`, { signedInAs: stranger, expectedErrors: [/404/] });
    await page.getByText('There is no receipt for this request.').waitFor();
  });

  it('that failed are listed with the meaning of their error', async () => {
    const page = await openPage('/usage', { signedInAs: person });
    await page.getByRole('button', { name: 'Failed', exact: true }).click();
    await expect.poll(() => new URL(page.url()).searchParams.get('list')).toBe('failed');
    const row = page.getByRole('row', { name: /model_not_found/ });
    await row.waitFor();
    expect(await row.textContent()).toContain('404');
    expect(await page.locator('main').textContent()).not.toContain('no/such-model');
    await row.getByRole('link').click();
    await page.getByText('404 model_not_found').waitFor();
    await page.getByText('not on this network').waitFor();
  });

  it('are found by the id of a response', async () => {
    const page = await openPage('/usage', { signedInAs: person, width: 'phone' });
    await page.getByRole('button', { name: 'Find request' }).click();
    await page.getByText('Enter a request ID.').waitFor();
    await page.getByLabel('Request ID').fill(`cmpl-${completed.replaceAll('-', '')}`);
    await screenshot(page, 'usage-find-request');
    await page.getByRole('button', { name: 'Find request' }).click();
    await page.getByRole('heading', { name: 'Request', exact: true }).waitFor();
    await expect.poll(() => page.locator('main').textContent()).toContain(completed);
  });

  it('of another account are not shown', async () => {
    const page = await openPage(`/usage/${completed}`, { signedInAs: await newPerson(network), expectedErrors: [/404/] });
    await page.getByRole('heading', { name: 'Request not found' }).waitFor();
  });

  it('are drawn by hour or day, from the first to the last data', async () => {
    const row = (at: object, model: string, cost_micro_usd: number) => ({
      ...at,
      model,
      requests: 4,
      prompt_tokens: 1000,
      completion_tokens: 200,
      images: 0,
      cost_micro_usd,
    });
    const asked: URL[] = [];
    const page = await openPage('/usage?from=2026-01-01&to=2026-01-30', {
      signedInAs: person,
      prepare: async (context) => {
        await context.route('**/console/v1/usage/days?*', (route) => {
          const data = [row({ day: '2026-01-10' }, 'a/small', 40), row({ day: '2026-01-12' }, 'b/large', 900)];
          return route.fulfill({ json: { from: '2026-01-01', to: '2026-01-30', data } });
        });
        await context.route('**/console/v1/usage/hours?*', (route) => {
          asked.push(new URL(route.request().url()));
          const data = [
            row({ hour: '2026-01-10T22:00:00.000Z' }, 'a/small', 40),
            row({ hour: '2026-01-11T00:00:00.000Z' }, 'b/large', 900),
          ];
          return route.fulfill({ json: { data } });
        });
      },
    });
    const labels = () => page.locator('.chart-table tbody th').allTextContents();
    await page.getByRole('button', { name: 'Show as a table' }).click();
    await expect.poll(labels).toEqual(['Jan 10', 'Jan 11', 'Jan 12']);
    await page.getByRole('button', { name: 'Hourly' }).click();
    await expect.poll(labels).toEqual(['Jan 10, 22:00', 'Jan 10, 23:00', 'Jan 11, 00:00']);
    expect(asked.map(({ searchParams }) => [searchParams.get('from'), searchParams.get('to')])).toEqual([['2026-01-10', '2026-01-12']]);
    await page.getByRole('button', { name: 'Show as a chart' }).click();
    await page.locator('.chart canvas').waitFor();
    await screenshot(page, 'usage-hourly');
  });

  it.each(LOOKS)('are accessible and hold still, $theme and $width', async ({ theme, width }) => {
    const page = await openPage('/usage', { signedInAs: person, theme, width });
    for (const path of ['/usage', '/usage?list=failed', `/usage/${completed}`, `/usage/${failed}`]) {
      if (path !== '/usage') await page.goto(path);
      await page.locator('main h1').first().waitFor();
      await expect.poll(() => page.locator('[aria-busy="true"], .skeleton, .chart-waiting').count()).toBe(0);
      const name = path.replace(completed, 'completed').replace(failed, 'failed');
      await screenshot(page, `${name.slice(1).replaceAll(/\W+/g, '-')}-${theme}-${width}`);
      await expectAccessible(page);
      await expectStill(page);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      expect(overflow, name).toBeLessThanOrEqual(0);
    }
  });
});

/** Tokens of the first request in an order by tokens. */
async function highest(person: Person, order: 'asc' | 'desc'): Promise<string> {
  const { data } = await person.call<{ data: { prompt_tokens: number; completion_tokens: number }[] }>(
    'GET',
    `/console/v1/usage?sort=tokens&order=${order}`,
  );
  return String((data[0]?.prompt_tokens ?? 0) + (data[0]?.completion_tokens ?? 0));
}
