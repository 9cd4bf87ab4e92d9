/** Names of a hundred letters without a space on screens of 320 pixels (WCAG 1.4.10): no content leaves the viewport. */
import type { Page } from 'playwright-core';
import { expect, it, onTestFinished } from 'vitest';
import { describeInBrowser } from '../support/console/browser.js';
import { openPage, screenshot } from '../support/console/open-page.js';
import { newPerson } from '../support/console/people.js';
import { LightAgent, makeKeys } from '../support/light/agent.js';
import { sharedNetwork } from '../support/shared-network.js';

const NAME = 'W'.repeat(100);
const NARROW = { width: 320, height: 640 };
/** Wide enough for a table of seven columns. */
const WIDE = { width: 1440, height: 900 };

describeInBrowser('a long name', () => {
  it('wraps in the heading of a page', async () => {
    const network = await sharedNetwork();
    const keys = makeKeys();
    const { enclave } = keys;
    const attest = enclave.attestation.bind(enclave);
    enclave.attestation = () => attest({ chip_name: NAME });
    const agent = await LightAgent.join({ url: network.baseUrl, models: ['light/long-names'], keys });
    onTestFinished(() => agent.leave());
    const page = await openPage(`/providers/${agent.providerId}`);
    expect(await page.locator('h1').textContent()).toBe(NAME);
    await expectNoneHidden(page);
  });

  it('wraps in a table, and leaves the other columns visible', async () => {
    const person = await newPerson(await sharedNetwork());
    await person.call('POST', '/console/v1/keys', { name: NAME });
    const page = await openPage('/keys', { signedInAs: person });
    await page.getByRole('rowheader', { name: NAME }).waitFor();
    await expectNoneHidden(page);
  });
});

describeInBrowser('a long account name', () => {
  it('stays inside the sidebar and its menu', async () => {
    const person = await newPerson(await sharedNetwork(), { name: NAME });
    const page = await openPage('/keys', { signedInAs: person });
    await page.locator('.account-name').waitFor();
    const sidebar = page.locator('.shell-side');
    expect(await sidebar.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)).toBeLessThanOrEqual(0);
    await page.locator('.account-trigger').click();
    const menu = await page.getByRole('menu').boundingBox();
    expect((menu?.x ?? -1) >= 0 && (menu?.x ?? 0) + (menu?.width ?? Number.POSITIVE_INFINITY) <= WIDE.width).toBe(true);
    await screenshot(page, 'long-account-name');
    await page.keyboard.press('Escape');
    await expectNoneHidden(page);
  });
});

describeInBrowser('a screen of 320 pixels', () => {
  it('fits the bar with the sign-in link, and the playground', async () => {
    const visitor = await openPage('/sign-in');
    await expectNoneHidden(visitor);
    const person = await newPerson(await sharedNetwork(), { deposit: 1_000_000 });
    const page = await openPage('/playground', { signedInAs: person });
    await page.getByRole('button', { name: 'Explain digital signatures to a child.' }).waitFor();
    await expectNoneHidden(page);
  });
});

/** Expects no horizontal scrolling of the page or its tables. */
async function expectNoneHidden(page: Page): Promise<void> {
  for (const size of [NARROW, WIDE]) {
    await page.setViewportSize(size);
    const wider = await page.evaluate(() =>
      [document.documentElement, ...document.querySelectorAll('.table-frame')]
        .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)
        .map(({ nodeName, className, scrollWidth, clientWidth }) => `${nodeName}.${className}: ${scrollWidth} in ${clientWidth}`),
    );
    expect(wider, `${size.width} pixels wide`).toEqual([]);
  }
}
