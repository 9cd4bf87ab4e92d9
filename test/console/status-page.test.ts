/** The status page, the admin page of incidents, and the banner of an open incident. */
import type { Incident, NetworkStatus } from '@inference/formats';
import type { BrowserContext } from 'playwright-core';
import { expect, it, onTestFinished } from 'vitest';
import { expectAccessible } from '../support/console/accessible.js';
import { describeInBrowser } from '../support/console/browser.js';
import { expectStill, LOOKS, openPage, screenshot } from '../support/console/open-page.js';
import { newPerson } from '../support/console/people.js';
import { sharedNetwork } from '../support/shared-network.js';

describeInBrowser('the status page', () => {
  it('shows an open incident on top, and the days of a component by keyboard', { timeout: 240_000 }, async () => {
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
    // Read before the incident, because a cached response with the incident would show a banner in later tests.
    const readStatus = async () => (await (await fetch(`${baseUrl}/v1/network/status`)).json()) as NetworkStatus;
    let status = await readStatus();
    // The coordinator has not reported yet just after its start and after midnight UTC; its answer is cached for half a minute.
    const shareToday = async () => {
      status = await readStatus();
      return status.components.find(({ id }) => id === 'api')?.days.at(-1);
    };
    await expect.poll(shareToday, { timeout: 90_000, interval: 500 }).toEqual(expect.any(Number));
    const subject = { impact: 'major', components: ['payments'], models: [] };
    const message = 'Deposits wait for the card network.\n<b>Nothing</b> is lost.';
    const { id } = await send('POST', '', { ...subject, title: 'Deposits are delayed', status: 'identified', message });
    try {
      const { data } = (await (
        await fetch(`${baseUrl}/admin/v1/incidents`, { headers: { authorization: `Bearer ${adminKey}` } })
      ).json()) as { data: object[] };
      const json = { ...status, open_incidents: data, status: { indicator: 'major', description: 'Partial outage.' } };
      for (const look of [
        { theme: 'light', width: 'wide' },
        { theme: 'dark', width: 'phone' },
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
        await expect.poll(() => bar.getAttribute('aria-valuetext')).toMatch(/^\w{3} \d+: \d/);
        await page.keyboard.press('Home');
        await expect.poll(() => bar.getAttribute('aria-valuetext')).toMatch(/: no records$/);
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

  it('announces an incident of an operator, on a banner too, until it is resolved', async () => {
    const network = await sharedNetwork();
    const operator = await newPerson(network, { admin: true });
    const status = (await (await fetch(`${network.baseUrl}/v1/network/status?days=0`)).json()) as NetworkStatus;
    const incidents = () => operator.call<{ data: Incident[] }>('GET', '/admin/v1/incidents');
    onTestFinished(async () => {
      for (const { id } of (await incidents()).data) await operator.call('DELETE', `/admin/v1/incidents/${id}`);
    });
    // The public answer is cached for half a minute; incidents come from the operator's list.
    const publicStatus = async (): Promise<NetworkStatus> => {
      const { data } = await incidents();
      const [past, open] = [data.filter(({ resolved_at }) => resolved_at !== null), data.filter(({ resolved_at }) => resolved_at === null)];
      return { ...status, open_incidents: open, past_incidents: past };
    };
    const prepare = (context: BrowserContext) =>
      context.route('**/v1/network/status*', async (route) => route.fulfill({ json: await publicStatus() }));
    const admin = await openPage('/admin/incidents', { signedInAs: operator, prepare });
    const dialog = admin.locator('.dialog');

    await admin.getByRole('button', { name: 'Report incident' }).click();
    await dialog.getByRole('button', { name: 'Publish incident' }).click();
    await dialog.getByText('Enter a title.').waitFor();
    await dialog.getByLabel('Title').fill('Payments are slow');
    await dialog.getByLabel('Impact').selectOption('critical');
    await dialog.getByLabel('Payments').check();
    await dialog.getByLabel('Affected models').fill('org/one\norg/two');
    await dialog.getByLabel('Message').fill('Deposits take up to an hour.');
    await screenshot(admin, 'admin-incident-new');
    await expectAccessible(admin);
    await dialog.getByRole('button', { name: 'Publish incident' }).click();
    await admin.getByText('Incident published').waitFor();
    await admin.getByRole('heading', { name: 'Payments are slow' }).waitFor();
    await admin.getByText('Affects Payments, org/one, org/two.').waitFor();

    await admin.getByRole('button', { name: 'Schedule maintenance' }).click();
    await dialog.getByLabel('Title').fill('Database upgrade');
    await dialog.getByLabel('Start').fill('2199-01-15T09:30');
    await dialog.getByText('Jan 15, 2199, 8:30 AM UTC. Your time zone: Europe/Berlin.').waitFor();
    await dialog.getByLabel('End').fill('2199-01-15T09:00');
    await dialog.getByLabel('Message').fill('Sign-in pauses for a minute.');
    await dialog.getByRole('button', { name: 'Schedule maintenance' }).click();
    await dialog.getByText('The end must be after the start.').waitFor();
    await dialog.getByLabel('End').fill('2199-01-15T10:30');
    await screenshot(admin, 'admin-maintenance-new');
    await dialog.getByRole('button', { name: 'Schedule maintenance' }).click();
    await admin.getByText('Maintenance scheduled').waitFor();

    for (const look of LOOKS) {
      const page = await openPage('/models', { ...look, prepare });
      const banner = page.getByRole('complementary', { name: 'Open incident' });
      await banner.getByText('Payments are slow').waitFor();
      await screenshot(page, `incident-banner-${look.width}`);
      await expectAccessible(page);
      await expectStill(page);
      await banner.getByRole('button', { name: 'Dismiss' }).click();
      await banner.waitFor({ state: 'detached' });
      await page.goto('/status');
      await page.getByRole('heading', { name: 'Payments are slow' }).waitFor();
      await page.goto('/models');
      await page.getByRole('heading', { name: 'Models', level: 1 }).waitFor();
      expect(await banner.count()).toBe(0);

      const list = await openPage('/admin/incidents', { ...look, signedInAs: operator, prepare });
      await list.getByRole('heading', { name: 'Database upgrade' }).waitFor();
      await screenshot(list, `admin-open-incidents-${look.width}`);
      await expectAccessible(list);
      await expectStill(list);
    }

    const incident = admin.getByRole('region', { name: 'Payments are slow' });
    await incident.getByRole('button', { name: 'Add update' }).click();
    await dialog.getByLabel('Status').selectOption('monitoring');
    await dialog.getByLabel('Message').fill('The processor is fast again.');
    await dialog.getByRole('button', { name: 'Publish update' }).click();
    await admin.getByText('Update published').waitFor();
    await incident.getByRole('button', { name: 'Edit update' }).first().click();
    await dialog.getByLabel('Message').fill('The card network is fast again.');
    await dialog.getByRole('button', { name: 'Save changes' }).click();
    await incident.getByText('The card network is fast again.').waitFor();
    await incident.getByRole('button', { name: 'Edit', exact: true }).click();
    await expect.poll(() => dialog.getByLabel('Payments').isChecked()).toBe(true);
    await dialog.getByLabel('Impact').selectOption('minor');
    await dialog.getByRole('button', { name: 'Save changes' }).click();
    await incident.getByText('Minor impact').waitFor();

    await incident.getByRole('button', { name: 'Resolve' }).click();
    await dialog.getByLabel('Message').fill('All deposits have arrived.');
    await dialog.getByRole('button', { name: 'Resolve' }).click();
    const past = admin.getByRole('row', { name: /Payments are slow/ });
    await past.waitFor();
    await past.getByRole('button', { name: 'Updates of Payments are slow' }).click();
    await dialog.getByRole('button', { name: 'Edit update' }).first().click();
    await dialog.getByLabel('Message').fill('All deposits arrived by noon.');
    await dialog.getByRole('button', { name: 'Save changes' }).click();
    // The dialog closes once the change is stored. A status page opened before would show the earlier text for a minute.
    await dialog.waitFor({ state: 'detached' });
    const page = await openPage('/status', { prepare });
    await page.getByText('All deposits arrived by noon.').waitFor();
    await page.getByText('Resolved:').waitFor();

    await past.getByRole('button', { name: 'Reopen Payments are slow' }).click();
    await dialog.getByLabel('Message').fill('New reports.');
    await dialog.getByRole('button', { name: 'Reopen' }).click();
    await incident.getByText('New reports.').waitFor();
    for (const title of ['Payments are slow', 'Database upgrade']) {
      await admin.getByRole('region', { name: title }).getByRole('button', { name: 'Delete' }).click();
      await dialog.getByRole('button', { name: 'Delete' }).click();
      // Else the next click could meet this dialog, which is about to close.
      await dialog.waitFor({ state: 'detached' });
      await admin.getByRole('region', { name: title }).waitFor({ state: 'detached' });
    }
    expect((await incidents()).data).toEqual([]);
  });
});
