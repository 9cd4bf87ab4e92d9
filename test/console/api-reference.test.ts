/** API reference in a browser, from the coordinator's own OpenAPI document. */
import { expect, it } from 'vitest';
import { expectAccessible } from '../support/console/accessible.js';
import { describeInBrowser } from '../support/console/browser.js';
import { expectStill, LOOKS, openPage, screenshot } from '../support/console/open-page.js';
import { sharedNetwork } from '../support/shared-network.js';

describeInBrowser('the API reference', () => {
  it.each(LOOKS)('shows every operation without signing in, $theme and $width', async ({ theme, width }) => {
    const { baseUrl } = await sharedNetwork();
    const { paths } = (await (await fetch(`${baseUrl}/openapi.json`)).json()) as { paths: Record<string, object> };
    const page = await openPage('/api-reference', { theme, width });
    await page.getByRole('heading', { level: 2, name: 'Inference' }).waitFor();
    const listed = await page.locator('.api-heading code').allTextContents();
    expect(listed.toSorted()).toEqual(Object.keys(paths).toSorted());
    await screenshot(page, `api-reference-${width}-${theme}`);
    await expectAccessible(page);
    await expectStill(page);
    await page.getByText('/v1/messages', { exact: true }).click();
    const operation = page.locator('#post-v1-messages');
    await operation.getByRole('heading', { name: 'Request body' }).waitFor();
    expect(await operation.locator('.copy-field code').first().textContent()).toContain(`curl "${baseUrl}/v1/messages"`);
    await operation.getByText('max_tokens', { exact: true }).waitFor();
    await operation.locator('summary', { hasText: '402' }).click();
    await operation.getByText('"billing_error"').first().waitFor();
    await screenshot(page, `api-reference-open-${width}-${theme}`);
    await expectAccessible(page);
    expect(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)).toBeLessThanOrEqual(0);
  });

  it('opens although the anchor is not percent-encoded text', async () => {
    const page = await openPage('/api-reference#%');
    await page.getByRole('heading', { level: 2, name: 'Inference' }).waitFor();
  });

  it('opens an operation from its link', async () => {
    const page = await openPage('/api-reference#get-v1-models');
    await page.locator('#get-v1-models').getByRole('heading', { name: 'Parameters' }).waitFor();
    await page.getByRole('link', { name: 'documentation', exact: true }).click();
    await page.waitForURL('**/docs');
  });
});
