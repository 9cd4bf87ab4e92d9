/** The status page: incidents of an operator with their updates, and the details of a day by keyboard. */
import { expect, it } from 'vitest';
import { expectAccessible } from '../support/console/accessible.js';
import { describeInBrowser } from '../support/console/browser.js';
import { openPage, screenshot } from '../support/console/open-page.js';
import { sharedNetwork } from '../support/shared-network.js';

describeInBrowser('the status page', () => {
  it('shows an open incident on top, and the days of a component by keyboard', async () => {
    const { baseUrl, adminKey } = await sharedNetwork();
    const send = async (method: string, path: string, body?: object) => {
      const response = await fetch(`${baseUrl}/admin/v1/incidents${path}`, {
        method,
        headers: { authorization: `Bearer ${adminKey}`, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      expect(response.status).toBe(200);
      return (await response.json()) as { id: string };
    };
    const subject = { impact: 'major', components: ['payments'], models: [] };
    const message = 'Deposits wait for the card network.\n<b>Nothing</b> is lost.';
    const { id } = await send('POST', '', { ...subject, title: 'Deposits are delayed', status: 'identified', message });
    try {
      const status = (await (await fetch(`${baseUrl}/v1/network/status`)).json()) as object;
      const { data } = (await (
        await fetch(`${baseUrl}/admin/v1/incidents`, { headers: { authorization: `Bearer ${adminKey}` } })
      ).json()) as { data: object[] };
      const json = { ...status, open_incidents: data, status: { indicator: 'major', description: 'Partial outage.' } };
      for (const look of [
        { theme: 'light', width: 'wide' },
        { theme: 'dark', width: 'phone' },
        { theme: 'light', width: 'phone' },
        { theme: 'dark', width: 'wide' },
      ] as const) {
        // The cached answer would show the incident only after half a minute.
        const page = await openPage('/status', {
          ...look,
          prepare: (context) => context.route('**/v1/network/status*', (route) => route.fulfill({ json })),
        });
        await page.getByRole('heading', { name: 'Deposits are delayed' }).waitFor();
        await page.getByText('<b>Nothing</b> is lost.').waitFor();
        await page.getByText('Partial outage.', { exact: true }).waitFor();
        const bar = page.getByRole('slider', { name: 'API, uptime per day' });
        await bar.focus();
        await page.keyboard.press('End');
        expect(await bar.getAttribute('aria-valuetext')).toMatch(/^\w{3} \d+: \d/);
        await page.keyboard.press('Home');
        expect(await bar.getAttribute('aria-valuetext')).toMatch(/: no records$/);
        await page
          .getByText(/: no records$/)
          .first()
          .waitFor();
        await screenshot(page, `status-incident-${look.width}-${look.theme}`);
        await expectAccessible(page);
      }
    } finally {
      await send('DELETE', `/${id}`);
    }
  });
});
