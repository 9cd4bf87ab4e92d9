/** Documentation in a browser, from the built console alone: list by reader, documents, links, search. */
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { expectAccessible } from '../support/console/accessible.js';
import { describeInBrowser } from '../support/console/browser.js';
import { expectStill, LOOKS, openPage, screenshot } from '../support/console/open-page.js';

/** Pixels by which the page is wider than the window. */
function overflow(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
}

describeInBrowser('documentation', () => {
  it.each(LOOKS)('is listed by reader and readable without signing in, $theme and $width', async ({ theme, width }) => {
    const page = await openPage('/docs', { theme, width });
    for (const reader of ['API clients', 'Mac owners', 'Operators', 'Contributors']) {
      await page.getByRole('heading', { level: 2, name: reader }).waitFor();
    }
    await screenshot(page, `docs-${width}-${theme}`);
    await expectAccessible(page);
    await page.getByRole('link', { name: 'Clients', exact: true }).click();
    await page.waitForURL('**/docs/clients');
    await page.getByRole('heading', { level: 1, name: 'Clients' }).waitFor();
    await expect.poll(() => page.title()).toBe('Clients · Inference network');
    await screenshot(page, `docs-clients-${width}-${theme}`);
    await expectAccessible(page);
    await expectStill(page);
    expect(await overflow(page)).toBeLessThanOrEqual(0);
    // Wide tables scroll inside their frame.
    const tables = page.locator('.document-table');
    await expect.poll(() => tables.count()).toBeGreaterThan(2);
    if (width === 'phone') {
      const scrolls = await tables.evaluateAll((frames) => frames.some((frame) => frame.scrollWidth > frame.clientWidth));
      expect(scrolls).toBe(true);
    }
  });

  it.each(['wide', 'phone'] as const)('is readable without JavaScript, %s', async (width) => {
    const page = await openPage('/docs', { width, javaScript: false });
    await page.getByRole('link', { name: 'Clients', exact: true }).click();
    await page.waitForURL('**/docs/clients');
    expect(await page.title()).toBe('Clients · Inference network');
    expect(await page.getByRole('heading', { level: 1 }).allTextContents()).toEqual(['Clients']);
    await page.getByRole('link', { name: 'what is billed' }).click();
    await page.getByRole('heading', { level: 1, name: /Bill signed/ }).waitFor();
    await screenshot(page, `docs-without-script-${width}`);
  });

  it('is readable although the anchor is not percent-encoded text', async () => {
    const page = await openPage('/docs/clients#%');
    await expect.poll(() => page.title()).toBe('Clients · Inference network');
    await page.getByRole('heading', { level: 1, name: 'Clients' }).waitFor();
  });

  it('keeps the text of the HTML until the page can show it', async () => {
    let release = (): void => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const page = await openPage('/docs', {
      prepare: async (context) => {
        await context.route('**/assets/clients-*.js', async (route) => {
          await released;
          await route.continue();
        });
        const early = await context.newPage();
        await early.goto('/docs/clients', { waitUntil: 'commit' });
        await early.getByRole('heading', { level: 2, name: 'Routing preferences' }).waitFor();
        // Records every moment without the text.
        await early.evaluate(() => {
          const lost: string[] = [];
          Object.assign(window, { lost });
          new MutationObserver(() => {
            if (document.getElementById('routing-preferences') === null) lost.push(document.body.innerText.slice(0, 200));
          }).observe(document.body, { childList: true, subtree: true });
        });
        await screenshot(early, 'docs-before-script');
        release();
        await early.getByRole('searchbox').waitFor();
        expect(await early.evaluate(() => (window as unknown as { lost: string[] }).lost)).toEqual([]);
        await expect.poll(() => early.locator('[data-prerendered]').count()).toBe(0);
        await early.close();
      },
    });
    await page.getByRole('heading', { level: 1, name: 'Documentation' }).waitFor();
  });

  it('opens at an anchor, follows links between documents, and goes back', async () => {
    const page = await openPage('/docs/clients#routing-preferences');
    const top = (): Promise<number> => page.locator('#routing-preferences').evaluate((heading) => heading.getBoundingClientRect().top);
    await expect.poll(top).toBeLessThan(120);
    await page.getByRole('link', { name: 'what is billed' }).click();
    await page.waitForURL('**/docs/decisions/0006-bill-signed-and-delivered-usage');
    await page.getByRole('heading', { level: 1, name: /Bill signed/ }).waitFor();
    await page.goBack();
    await page.getByRole('heading', { level: 1, name: 'Clients' }).waitFor();
    await page.getByRole('navigation', { name: 'On this page' }).getByRole('link', { name: 'Routing preferences' }).click();
    await expect.poll(top).toBeLessThan(120);
  });

  it('copies code', async () => {
    const page = await openPage('/docs/getting-started', {
      prepare: (context) => context.grantPermissions(['clipboard-read', 'clipboard-write']),
    });
    const block = page.locator('.document .copy-field').first();
    const code = await block.locator('code').textContent();
    await block.getByRole('button', { name: 'Copy Code' }).click();
    await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toBe(code);
    expect(code?.length).toBeGreaterThan(10);
  });

  it('serves linked files from the build', async () => {
    const page = await openPage('/docs/e2e-protocol');
    const href = await page
      .getByRole('link', { name: /vectors/ })
      .first()
      .getAttribute('href');
    const response = await page.request.get(href ?? '');
    expect(response.status()).toBe(200);
    expect(Object.keys((await response.json()) as object).length).toBeGreaterThan(1);
  });

  it.each(LOOKS)('finds sections of all documents, $theme and $width', async ({ theme, width }) => {
    const page = await openPage('/docs', { theme, width });
    await page.getByLabel('Search the documentation').fill('routing preferences');
    const results = page.getByRole('region', { name: 'Search results' });
    await results.getByRole('link', { name: 'Routing preferences' }).first().waitFor();
    await screenshot(page, `docs-search-${width}-${theme}`);
    await expectAccessible(page);
    await expect.poll(() => new URL(page.url()).searchParams.get('q')).toBe('routing preferences');
    await results.getByRole('link', { name: 'Routing preferences' }).first().click();
    await page.waitForURL('**/docs/clients#routing-preferences');
    await page.getByRole('heading', { level: 1, name: 'Clients' }).waitFor();
    await page.getByLabel('Search the documentation').fill('zzzzqqqq');
    await page.getByText('No section matches').waitFor();
  });

  it('says when there is no such document', async () => {
    const page = await openPage('/docs/no-such-document');
    await page.getByRole('heading', { name: 'Document not found' }).waitFor();
    await expectAccessible(page);
    await page.getByRole('link', { name: 'All documents' }).click();
    await page.getByRole('heading', { level: 1, name: 'Documentation' }).waitFor();
  });
});
