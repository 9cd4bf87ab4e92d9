/** Public pages in a browser against a running network: content, both themes, phone and desktop widths. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Stats } from '@inference/formats';
import type { AttestationFeed } from '@inference/protocol';
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { expectAccessible } from '../support/console/accessible.js';
import { describeInBrowser } from '../support/console/browser.js';
import { expectStill, LOOKS, openPage, screenshot } from '../support/console/open-page.js';
import { ROOT } from '../support/npm-start.js';
import { sharedNetwork } from '../support/shared-network.js';

async function providerId(): Promise<string> {
  const { baseUrl } = await sharedNetwork();
  const { providers } = (await (await fetch(`${baseUrl}/v1/stats`)).json()) as Stats;
  return providers[0]?.id ?? '';
}

/** Machines in the statistics. The response is cached for a minute, so machines of earlier tests are included. */
async function providerCount(): Promise<number> {
  const { baseUrl } = await sharedNetwork();
  return ((await (await fetch(`${baseUrl}/v1/stats`)).json()) as Stats).providers.length;
}

async function modelPath(): Promise<string> {
  const { model } = await sharedNetwork();
  return `/models/${encodeURIComponent(model)}`;
}

/** Waits until no loading indicator remains. */
async function settled(page: Page): Promise<void> {
  await page.waitForFunction(() => document.querySelector('[aria-busy="true"], .skeleton, .chart-waiting') === null);
}

const PAGES: readonly { name: string; path: () => Promise<string>; heading: RegExp; shows: RegExp }[] = [
  { name: 'home', path: async () => '/', heading: /AI models on people's Macs/, shows: /claims recomputed from their evidence/ },
  { name: 'network', path: async () => '/network', heading: /Network overview/, shows: /GB memory/ },
  { name: 'models', path: async () => '/models', heading: /^Models$/, shows: /medians over settled requests/ },
  { name: 'model', path: modelPath, heading: /\w/, shows: /Structured output/ },
  { name: 'providers', path: async () => '/providers', heading: /^Providers$/, shows: /1 to 1 of 1 providers/ },
  { name: 'provider', path: async () => `/providers/${await providerId()}`, heading: /\w/, shows: /This is a simulation/ },
  { name: 'leaderboard', path: async () => '/leaderboard', heading: /Leaderboard/, shows: /renewed every five minutes/ },
  { name: 'status', path: async () => '/status', heading: /^Status$/, shows: /uptime/ },
  { name: 'verify', path: async () => '/verify', heading: /Verify a response or record/, shows: /Text to verify/ },
  { name: 'modes', path: async () => '/modes', heading: /Plain and end-to-end mode/, shows: /Only a list of allowed enclave keys/ },
];

describeInBrowser('every public page', () => {
  // One browser page for all, because a fresh one takes twice the processor time.
  it.each(LOOKS)('is accessible and holds still, $theme and $width', { timeout: 240_000 }, async ({ theme, width }) => {
    await expect.poll(providerCount, { timeout: 110_000, interval: 250 }).toBe(1);
    const page = await openPage('/', { theme, width });
    for (const { name, path, heading, shows } of PAGES) {
      if (name !== 'home') await page.goto(await path());
      await page.getByText(shows).first().waitFor();
      expect(await page.locator('h1').textContent(), name).toMatch(heading);
      await settled(page);
      await screenshot(page, `${name}-${width}-${theme}`);
      await expectAccessible(page);
      await expectStill(page);
      // No horizontal overflow.
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      expect(overflow, name).toBeLessThanOrEqual(0);
    }
  });
});

describeInBrowser('the network page', () => {
  it('shows the numbers of its chart as a table too', async () => {
    const page = await openPage('/network');
    await settled(page);
    const picture = page.getByRole('img', { name: /Requests per minute over the last 30 minutes\. From \d\d:\d\d to \d\d:\d\d/ });
    await picture.waitFor();
    await page.getByRole('button', { name: 'Show as a table' }).click();
    const rows = page.getByRole('region', { name: /Requests per minute/ }).getByRole('row');
    await expect.poll(() => rows.count()).toBe(31);
    await page.getByRole('button', { name: 'Tokens' }).click();
    await page.getByRole('columnheader', { name: 'Output tokens' }).waitFor();
    await expectAccessible(page);
  });

  it('shows the error when the coordinator fails, and the network after a retry', async () => {
    let broken = true;
    const page = await openPage('/network', {
      expectedErrors: [/503/],
      prepare: (context) =>
        context.route('**/v1/stats', (route) =>
          broken
            ? route.fulfill({
                status: 503,
                headers: { 'retry-after': '30' },
                json: { error: { message: 'Try again soon.', code: 'overloaded' } },
              })
            : route.continue(),
        ),
    });
    await page.getByRole('alert').getByText('Try again soon.').waitFor();
    await expectAccessible(page);
    broken = false;
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText(/GB memory/).waitFor();
  });

  it('shows an empty state when no provider serves', async () => {
    const { baseUrl } = await sharedNetwork();
    const stats = (await (await fetch(`${baseUrl}/v1/stats`)).json()) as Stats;
    const page = await openPage('/network', {
      prepare: (context) => context.route('**/v1/stats', (route) => route.fulfill({ json: { ...stats, providers: [], models: [] } })),
    });
    await page.getByText('No models available').waitFor();
    await screenshot(page, 'network-empty');
    await expectAccessible(page);
  });
});

describeInBrowser('the list of providers', () => {
  it('handles thousands of rows, filters them, and stores the filters in the URL', async () => {
    const { baseUrl } = await sharedNetwork();
    const stats = (await (await fetch(`${baseUrl}/v1/stats`)).json()) as Stats;
    const one = stats.providers[0] as Stats['providers'][number];
    const chips = ['Apple M1', 'Apple M2 Pro', 'Apple M3 Max', 'Apple M4 Max', 'Apple M4 Ultra'];
    const providers = Array.from({ length: 5000 }, (_, index) => ({
      ...one,
      id: index.toString(16).padStart(32, '0'),
      chip: chips[index % chips.length] as string,
      trust_level: index % 3 === 0 ? ('hardware' as const) : ('self_signed' as const),
      status: index % 50 === 0 ? 'quarantined' : 'online',
      requests_served: 10_000 - index,
    }));
    const page = await openPage('/providers', {
      prepare: (context) => context.route('**/v1/stats', (route) => route.fulfill({ json: { ...stats, providers } })),
    });
    await page.getByText('1 to 50 of 5,000 providers').waitFor();
    await expect.poll(() => page.locator('tbody tr').count()).toBe(50);
    await screenshot(page, 'providers-many');
    await page.getByRole('button', { name: 'Next' }).click();
    await page.getByText('51 to 100 of 5,000 providers').waitFor();
    await page.getByLabel('Chip').selectOption('Apple M4 Ultra');
    await page.getByLabel('Trust').selectOption('hardware');
    await page.getByText(/of 333 providers/).waitFor();
    await expect.poll(() => new URL(page.url()).searchParams.get('chip')).toBe('Apple M4 Ultra');
    await page.getByLabel('Search').fill('no such thing');
    await page.getByText('No providers match').waitFor();
    await page.getByLabel('Search').fill('');
    await page.getByText(/of 333 providers/).waitFor();
    await page.reload();
    await page.getByText(/of 333 providers/).waitFor();
  });
});

describeInBrowser('trust level hardware', () => {
  it.each([
    { simulated: true, label: '1 × Verified · simulated machine', tone: 'warn' },
    { simulated: false, label: '1 × Verified · Apple hardware', tone: 'good' },
  ])('is green only under the root of Apple, simulated: $simulated', async ({ simulated, label, tone }) => {
    const { baseUrl } = await sharedNetwork();
    const stats = (await (await fetch(`${baseUrl}/v1/stats`)).json()) as Stats;
    const providers = stats.providers.map((provider) => ({ ...provider, trust_level: 'hardware' as const }));
    const page = await openPage('/network', {
      width: 'phone',
      prepare: async (context) => {
        await context.route('**/v1/stats', (route) => route.fulfill({ json: { ...stats, providers } }));
        await context.route('**/v1/providers/attestation*', async (route) => {
          const response = await route.fetch();
          const feed = (await response.json()) as AttestationFeed;
          await route.fulfill({ response, json: { ...feed, trust_anchor: { ...feed.trust_anchor, simulated } } });
        });
      },
    });
    const badge = page.locator('.verdict', { hasText: label });
    await badge.waitFor();
    expect(await badge.getAttribute('data-tone')).toBe(tone);
    await page.getByText('What these words mean').click();
    await page.getByText('Nothing is proved about hardware.').waitFor();
    await screenshot(page, `network-hardware-${simulated ? 'simulated' : 'apple'}`);
    await expectAccessible(page);
    expect(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)).toBeLessThanOrEqual(0);
  });
});

describeInBrowser('the leaderboard', () => {
  it('stores the ranking in the URL and reads it from there', async () => {
    const page = await openPage('/leaderboard?metric=tokens&window=7d');
    expect(await page.getByRole('button', { name: 'Tokens', exact: true }).getAttribute('aria-pressed')).toBe('true');
    expect(await page.getByRole('button', { name: '7 days' }).getAttribute('aria-pressed')).toBe('true');
    await page.getByRole('button', { name: 'Requests' }).click();
    await page.waitForURL('**/leaderboard?metric=jobs&window=7d');
    await page.getByRole('button', { name: 'All time' }).click();
    await page.waitForURL('**/leaderboard?metric=jobs');
  });
});

describeInBrowser('the console', () => {
  it('can be used with the keyboard alone', async () => {
    const page = await openPage('/');
    await settled(page);
    const focused = (): Promise<string> => page.evaluate(() => document.activeElement?.textContent?.trim() ?? '');
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('Skip to the content');
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('Inference network');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('Providers');
    const ring = await page.evaluate(() => getComputedStyle(document.activeElement as Element).outlineStyle);
    expect(ring).toBe('solid');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/providers');
    await expect.poll(() => page.evaluate(() => document.activeElement?.outerHTML)).toMatch(/^<h1.*>Providers</);
    await expect.poll(() => page.title()).toBe('Providers · Inference network');
    await page.getByRole('link', { name: /^Provider [0-9a-f]{8}…$/ }).focus();
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/providers\/[0-9a-f]{32}$/);
    await page.getByRole('button', { name: 'Verify', exact: true }).press('Enter');
    await page.getByText('What this does not prove').waitFor();
  });

  it('opens its menu on a phone, follows a link, and closes the menu', async () => {
    const page = await openPage('/', { width: 'phone', theme: 'dark' });
    await page.getByRole('button', { name: 'Open the menu' }).click();
    const menu = page.getByRole('dialog', { name: 'Menu' });
    await menu.waitFor();
    await screenshot(page, 'menu-phone-dark');
    await expectAccessible(page);
    await menu.getByRole('link', { name: 'Leaderboard' }).click();
    await page.waitForURL('**/leaderboard');
    await menu.waitFor({ state: 'hidden' });
  });

  it('retains a chosen theme over a reload, from the first paint', async () => {
    const page = await openPage('/', { theme: 'light', expectedErrors: [/ERR_FAILED/] });
    const ground = (): Promise<string> => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    const light = await ground();
    await page.getByRole('complementary').getByRole('button', { name: 'Dark' }).click();
    await expect.poll(ground).not.toBe(light);
    const dark = await ground();
    await page.route('**/assets/*.js', (route) => route.abort());
    await page.goto('/', { waitUntil: 'load' }).catch(() => {});
    expect(await ground()).toBe(dark);
    expect(await page.evaluate(() => Object.keys(localStorage))).toEqual(['theme']);
  });

  it('shows a page for unknown paths', async () => {
    const page = await openPage('/no/such/page', { expectedErrors: [/404/] });
    await page.getByRole('heading', { name: 'Page not found' }).waitFor();
    await expectAccessible(page);
    await page.getByRole('link', { name: 'Go to the overview' }).click();
    await page.getByRole('heading', { name: 'Network overview' }).waitFor();
  });

  it('loads less than 250 kB of compressed script for its first page, and neither verifier nor charts with the shell', async () => {
    const page = await openPage('/');
    await settled(page);
    await page.getByText(/claims recomputed/).waitFor();
    const scripts = await page.evaluate(() =>
      performance.getEntriesByType('resource').flatMap(({ name }) => (/\.js$/.test(name) ? [new URL(name).pathname] : [])),
    );
    const dist = join(ROOT, 'apps/console/dist');
    const sizeOf = (path: string): number => {
      try {
        return readFileSync(join(dist, `${path}.gz`)).length;
      } catch {
        return readFileSync(join(dist, path)).length;
      }
    };
    expect(scripts.length).toBeGreaterThan(2);
    // A compressed copy of a file with an unhashed name could become outdated. Only documents are written together with their copies.
    expect(readdirSync(dist).filter((name) => /\.(?:br|gz)$/.test(name) && !name.startsWith('docs.html.'))).toEqual([]);
    const manifest = JSON.parse(readFileSync(join(dist, '.vite/manifest.json'), 'utf8')) as Record<
      string,
      { file: string; isEntry?: boolean; imports?: string[]; dynamicImports?: string[] }
    >;
    const shell = Object.values(manifest).filter(({ isEntry }) => isEntry);
    const withShell = new Set(shell.flatMap(({ file, imports = [] }) => [file, ...imports.map((name) => manifest[name]?.file ?? '')]));
    const lazy = ['src/ui/chart/chart-drawing.tsx', '../../packages/verifier/src/index.ts'].map((name) => manifest[name]?.file);
    for (const file of lazy) {
      expect(file, Object.keys(manifest).join(' ')).toBeDefined();
      expect(withShell.has(file as string)).toBe(false);
    }
    // The home page loads the verifier after its text. Other pages start without the verifier.
    expect(scripts).toContain(`/${lazy[1]}`);
    const withVerifier = new Set([
      lazy[1],
      ...(manifest['../../packages/verifier/src/index.ts']?.imports ?? []).map((name) => manifest[name]?.file),
    ]);
    const begun = scripts.filter((path) => !withVerifier.has(path.slice(1)) || withShell.has(path.slice(1)));
    expect(begun.reduce((sum, path) => sum + sizeOf(path), 0)).toBeLessThan(250_000);
    await page.goto('/network');
    await settled(page);
    const later = await page.evaluate(() => performance.getEntriesByType('resource').map(({ name }) => new URL(name).pathname));
    expect(later).not.toContain(`/${lazy[1]}`);
  });

  it('needs at most 150 kB of compressed script before it shows a public page', () => {
    const dist = join(ROOT, 'apps/console/dist');
    type Chunk = { readonly file: string; readonly isEntry?: boolean; readonly imports?: readonly string[] };
    const manifest = JSON.parse(readFileSync(join(dist, '.vite/manifest.json'), 'utf8')) as Record<string, Chunk>;
    const withImports = (name: string): string[] => [name, ...(manifest[name]?.imports ?? []).flatMap(withImports)];
    const entry = Object.keys(manifest).find((name) => manifest[name]?.isEntry === true) as string;
    const pages = Object.keys(manifest).filter((name) => /^src\/pages\/(?:network|models|docs)\/[\w-]+-page\.tsx$/.test(name));
    expect(pages.length).toBeGreaterThan(8);
    const sizes = pages.map((page) => {
      const files = new Set([entry, page].flatMap(withImports).map((name) => manifest[name]?.file as string));
      return { page, bytes: [...files].reduce((sum, file) => sum + gzipSync(readFileSync(join(dist, file))).length, 0) };
    });
    expect(sizes.filter(({ bytes }) => bytes > 150_000)).toEqual([]);
  });
});
