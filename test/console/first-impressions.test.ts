/** The console on slow lines, offline, after a release, on paper and on a phone. */
import { gzipSync } from 'node:zlib';
import type { ConsoleUsageEntry } from '@inference/formats';
import { expect, it } from 'vitest';
import { describeInBrowser } from '../support/console/browser.js';
import { openPage, screenshot } from '../support/console/open-page.js';
import { newPerson } from '../support/console/people.js';
import { sharedNetwork } from '../support/shared-network.js';

const USAGE_PAGE = '**/assets/usage-page-*.js';

describeInBrowser('the console', () => {
  it('shows text before its script has arrived', async () => {
    let release = (): void => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const page = await openPage('/', {
      prepare: async (context) => {
        await context.route('**/assets/index-*.js', async (route) => {
          await released;
          await route.continue();
        });
        const early = await context.newPage();
        await early.goto('/', { waitUntil: 'commit' });
        await early.getByText('Loading the console…').waitFor();
        expect(await early.locator('main').count()).toBe(0);
        const heading = await early.getByRole('heading', { level: 1 }).textContent();
        await screenshot(early, 'loading');
        await early.goto('/models', { waitUntil: 'commit' });
        await early.getByText('Loading the console…').waitFor();
        expect(await early.getByRole('heading', { level: 1 }).count()).toBe(0);
        await early.goto('/', { waitUntil: 'commit' });
        release();
        await early.locator('main h1').waitFor();
        expect(await early.locator('main h1').textContent()).toBe(heading);
        expect(await early.getByText('Loading the console…').count()).toBe(0);
        await early.close();
      },
    });
    expect(await page.getByText('Loading the console…').count()).toBe(0);
  });

  it('needs at most 12 kB and one round of requests for its first paint', async () => {
    const { baseUrl } = await sharedNetwork();
    const html = await (await fetch(baseUrl, { headers: { accept: 'text/html' } })).text();
    // Browsers paint after loading the style sheet and the classic script. Modules follow in document order.
    const needed = [...html.matchAll(/<link rel="stylesheet"[^>]* href="([^"]+)"|<script src="([^"]+)"/g)];
    const firstModule = html.search(/type="module"|rel="modulepreload"/);
    expect(needed.map(([, sheet, script]) => (sheet ?? script)?.replace(/-[\w-]{8}\./, '.'))).toEqual([
      '/assets/index.css',
      '/first-paint.js',
    ]);
    expect(Math.max(...needed.map(({ index }) => index))).toBeLessThan(firstModule);
    let bytes = gzipSync(html).length;
    for (const [, sheet, script] of needed) bytes += gzipSync(await (await fetch(`${baseUrl}${sheet ?? script}`)).text()).length;
    expect(bytes).toBeLessThanOrEqual(12_000);
  });

  it('has an icon for browsers that ask for /favicon.ico', async () => {
    const { baseUrl } = await sharedNetwork();
    const response = await fetch(`${baseUrl}/favicon.ico`);
    expect([response.status, response.headers.get('content-type')]).toEqual([200, expect.stringMatching(/^image\//)]);
    // ICONDIR: reserved 0, type 1 (icon).
    expect([...new Uint8Array(await response.arrayBuffer()).subarray(0, 4)]).toEqual([0, 0, 1, 0]);
  });

  it('reloads itself when a release has renamed the file of a page', async () => {
    const person = await newPerson(await sharedNetwork());
    const page = await openPage('/keys', { signedInAs: person, expectedErrors: [/404/] });
    let hasReloaded = false;
    // Set before the new document's requests. The page's own event may follow the first of these requests.
    await page.route('**/*', (route) => {
      if (route.request().isNavigationRequest()) hasReloaded = true;
      return route.fallback();
    });
    await page.route(USAGE_PAGE, (route) => (hasReloaded ? route.continue() : route.fulfill({ status: 404 })));
    await page.getByRole('link', { name: 'Usage', exact: true }).focus();
    await page.getByRole('link', { name: 'Usage', exact: true }).press('Enter');
    await page.getByRole('heading', { name: 'Usage', level: 1 }).waitFor();
    expect(hasReloaded).toBe(true);
  });

  it('says that it is offline instead of naming a module', async () => {
    const person = await newPerson(await sharedNetwork());
    const page = await openPage('/keys', { signedInAs: person, expectedErrors: [/ERR_INTERNET_DISCONNECTED/, /PageLoadError/] });
    await page.context().setOffline(true);
    await page.getByRole('link', { name: 'Usage', exact: true }).click();
    await page.getByText('You are offline.').waitFor();
    expect(await page.locator('main').textContent()).not.toContain('module');
    await page.context().setOffline(false);
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('heading', { name: 'Usage', level: 1 }).waitFor();
  });

  it('cuts neither its name nor the account menu at 1280 pixels', async () => {
    const person = await newPerson(await sharedNetwork(), { admin: true });
    const page = await openPage('/', { signedInAs: person });
    await page.setViewportSize({ width: 1280, height: 640 });
    const brand = page.locator('.shell-side .brand span');
    // Fonts differ in width; the name wraps where it does not fit.
    await brand.evaluate((element) => {
      element.style.letterSpacing = '0.15em';
    });
    expect(await brand.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)).toBeLessThanOrEqual(0);
    const account = await page.locator('.shell-side .account-trigger').boundingBox();
    expect((account?.y ?? 640) + (account?.height ?? 0)).toBeLessThanOrEqual(640);
    await screenshot(page, 'sidebar-1280');
  });

  it('prints the page without menus', async () => {
    const page = await openPage('/');
    await page.emulateMedia({ media: 'print' });
    expect(await page.getByRole('navigation', { name: 'Main' }).isVisible()).toBe(false);
    expect(await page.getByRole('link', { name: 'Sign in' }).first().isVisible()).toBe(false);
    expect(await page.locator('main h1').isVisible()).toBe(true);
    await screenshot(page, 'print');
  });

  it('gives the images of the playground an address', async () => {
    const person = await newPerson(await sharedNetwork(), { deposit: 1_000_000 });
    const page = await openPage('/playground?mode=images', { signedInAs: person });
    await page.getByRole('button', { name: 'Images', pressed: true }).waitFor();
    await page.getByRole('button', { name: 'Chat', exact: true }).click();
    await expect.poll(() => page.url()).not.toContain('mode=');
    await page.getByRole('button', { name: 'Images', exact: true }).click();
    await expect.poll(() => new URL(page.url()).searchParams.get('mode')).toBe('images');
  });

  it('lists requests compactly on a phone', async () => {
    const person = await newPerson(await sharedNetwork(), { deposit: 1_000_000 });
    const page = await openPage('/keys', { signedInAs: person, width: 'phone' });
    const entry: ConsoleUsageEntry = {
      request_id: '',
      completed_at: '2026-01-15T12:00:00.000Z',
      model: 'organisation/model-7b-instruct-q4',
      endpoint: '/v1/chat/completions',
      key: { id: 'k', name: 'laptop' },
      provider_id: '0'.repeat(32),
      prompt_tokens: 1234,
      completion_tokens: 567,
      images: 0,
      cost_micro_usd: 1234,
      latency_ms: 1840,
    };
    const rows = Array.from({ length: 35 }, (_, index) => ({ ...entry, request_id: `r${index}` }));
    await page.route('**/console/v1/usage?*', (route) => {
      const { searchParams } = new URL(route.request().url());
      const from = Number(searchParams.get('cursor') ?? 0);
      const end = from + Number(searchParams.get('limit'));
      return route.fulfill({ json: { data: rows.slice(from, end), next_cursor: end < rows.length ? String(end) : null } });
    });
    await page.goto('/usage');
    await page.getByRole('rowheader').first().waitFor();
    await screenshot(page, 'usage-phone');
    const height = () => page.evaluate(() => document.documentElement.scrollHeight);
    expect(await height()).toBeLessThan(5 * 812);
    await page.getByRole('button', { name: 'Show more' }).click();
    await expect.poll(() => page.getByRole('rowheader').count()).toBe(35);
    // Formerly 8,900 pixels.
    expect(await height()).toBeLessThan(7 * 812);
    expect(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)).toBeLessThanOrEqual(0);
  });
});
