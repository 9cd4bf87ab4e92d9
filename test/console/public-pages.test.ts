/** The pages that anybody may open, in a browser against a running network. */
import { expect, it } from 'vitest';
import { expectAccessible } from '../support/console/accessible.js';
import { describeInBrowser } from '../support/console/browser.js';
import { layoutShift, openPage, screenshot } from '../support/console/open-page.js';

describeInBrowser('the network page', () => {
  it('shows its heading', async () => {
    const page = await openPage('/');
    await screenshot(page, 'network');
    await expectAccessible(page);
    expect(await layoutShift(page)).toBeLessThan(0.02);
  });
  it('on a phone', async () => {
    const page = await openPage('/', { theme: 'dark', width: 'phone' });
    await screenshot(page, 'network-phone');
    await expectAccessible(page);
    await page.getByRole('button', { name: 'Open the menu' }).click();
    await page.getByRole('dialog').waitFor();
    await screenshot(page, 'network-phone-menu');
    await expectAccessible(page);
  });
});
