/** Two people and an organisation in the browser: invitation, roles, switching accounts, removal. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { expectAccessible } from '../support/console/accessible.js';
import { describeInBrowser } from '../support/console/browser.js';
import { expectStill, openPage, screenshot } from '../support/console/open-page.js';
import { newPerson } from '../support/console/people.js';
import type { DemoNetwork } from '../support/demo-network.js';
import { sharedNetwork } from '../support/shared-network.js';

const PASSWORD = 'correct horse battery staple';

describeInBrowser('an organisation', () => {
  it('is shared by an owner and an invited developer, until the owner removes the developer', async () => {
    const network = await sharedNetwork();
    const ada = await newPerson(network, { name: 'Ada Lovelace' });
    const owner = await openPage('/organisation', { signedInAs: ada });
    await owner.getByText('No organisations yet').waitFor();
    await owner.getByRole('main').getByRole('button', { name: 'Create organisation' }).click();
    await owner.getByLabel('Organisation name').fill('Analytical Engines');
    await owner.getByRole('dialog').getByRole('button', { name: 'Create organisation' }).click();
    await owner.getByText(/Analytical Engines · your role: Owner/).waitFor();
    await owner.getByRole('complementary').getByRole('button', { name: 'Analytical Engines' }).waitFor();

    const email = `grace-${process.pid}-${Date.now()}@example.com`;
    await owner.getByRole('button', { name: 'Invite', exact: true }).click();
    await owner.getByLabel('Email address').fill(email);
    await expectAccessible(owner);
    await screenshot(owner, 'organisation-invite');
    await owner.getByRole('button', { name: 'Send invitation' }).click();
    await owner
      .getByRole('row', { name: new RegExp(email) })
      .first()
      .waitFor();

    // The invited person has no account yet: signing up returns to the invitation.
    const guest = await openPage(await invitationPath(network, email), { expectedErrors: [/403/] });
    await expectAccessible(guest);
    await screenshot(guest, 'invitation-signed-out');
    await guest.getByRole('link', { name: 'Create an account' }).click();
    await guest.getByLabel('Name').fill('Grace Hopper');
    await guest.getByLabel('Email address').fill(email);
    await guest.getByLabel('Password').fill(PASSWORD);
    await guest.getByRole('button', { name: 'Create account' }).click();
    await guest.getByRole('heading', { name: 'Join Analytical Engines' }).waitFor();
    await guest.getByText('Ada Lovelace invites you as').waitFor();
    await expectAccessible(guest);
    await screenshot(guest, 'invitation');
    await guest.getByRole('button', { name: 'Accept invitation' }).click();
    await guest.getByText(/Analytical Engines · your role: Developer/).waitFor();

    // A developer creates keys, and can neither pay nor manage.
    await guest.getByRole('link', { name: 'API keys' }).click();
    await guest.getByRole('button', { name: 'Create key' }).click();
    await guest.getByRole('dialog').getByLabel('Name').fill('build server');
    await guest.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();
    await guest.getByRole('dialog').getByRole('button', { name: 'Done' }).click();
    await guest.getByRole('row', { name: /build server.*Grace Hopper/ }).waitFor();
    await guest.getByRole('link', { name: 'Balance' }).click();
    await guest.getByText('Available to withdraw').waitFor();
    expect(await guest.getByLabel('Amount in US dollars').count()).toBe(0);
    await guest.getByRole('link', { name: 'Link a machine' }).click();
    await guest.getByText(/Your role in Analytical Engines \(developer\) does not permit this/).waitFor();

    // Another tab acts for the personal account at the same time.
    const other = await guest.context().newPage();
    await other.goto('/keys');
    await other.getByText('No keys yet').waitFor();
    await switchTo(other, 'Grace Hopper', /Analytical Engines/);
    await other.getByRole('row', { name: /build server/ }).waitFor();
    await switchTo(other, 'Analytical Engines', /Personal account/);
    await other.getByText('No keys yet').waitFor();
    await other.close();

    await owner.reload();
    await owner
      .getByRole('row', { name: /Grace Hopper/ })
      .first()
      .waitFor();
    await owner.getByText('Created an API key').waitFor();
    await expectAccessible(owner);
    await screenshot(owner, 'organisation');
    await owner.getByRole('button', { name: 'Remove Grace Hopper' }).click();
    await owner.getByLabel('Also revoke the API key that Grace Hopper created').waitFor();
    await expectAccessible(owner);
    await screenshot(owner, 'organisation-remove');
    await owner.getByRole('button', { name: 'Remove member' }).click();
    await owner.getByText('1 API key revoked.').waitFor();

    // The removal takes effect with the next request.
    await guest.getByRole('link', { name: 'Usage' }).click();
    await guest.getByText('You no longer have access to this organisation').waitFor();
    await guest.getByRole('complementary').getByRole('button', { name: 'Grace Hopper' }).waitFor();
    await guest.getByText('Total').or(guest.getByText('No requests')).first().waitFor();

    await owner.getByRole('button', { name: 'Delete organisation' }).click();
    await owner.getByLabel('Name of the organisation').fill('Analytical Engines');
    await owner.getByRole('button', { name: 'Delete permanently' }).click();
    await owner.getByText('No organisations yet').waitFor();
  });

  it.each([
    ['light', 'phone'],
    ['dark', 'wide'],
  ] as const)('has accessible pages in the %s theme on a %s', async (theme, width) => {
    const network = await sharedNetwork();
    const person = await newPerson(network, { name: 'Ada Lovelace' });
    const { id } = await person.call<{ id: string }>('POST', '/console/v1/organisations', {
      name: 'Analytical Engines and Difference Company',
    });
    const page = await openPage('/organisation', {
      signedInAs: person,
      theme,
      width,
      prepare: (context) => context.addInitScript((account) => sessionStorage.setItem('account', account), id),
    });
    await page.getByText('Created the organisation').waitFor();
    await expectAccessible(page);
    await expectStill(page);
    await screenshot(page, `organisation-${theme}-${width}`);
    await page.getByRole('button', { name: width === 'phone' ? /^Account of Analytical/ : /^Analytical/ }).click();
    await page.getByRole('menuitemradio', { name: /Personal account/ }).waitFor();
    await expectAccessible(page);
    await screenshot(page, `account-switcher-${theme}-${width}`);
  });
});

async function switchTo(page: Page, from: string, to: RegExp): Promise<void> {
  await page.getByRole('complementary').getByRole('button', { name: from }).click();
  await page.getByRole('menuitemradio', { name: to }).click();
}

/** Path of the invitation mailed to this address, from the log of the development coordinator. */
async function invitationPath(network: DemoNetwork, email: string): Promise<string> {
  let path = '';
  await expect
    .poll(() => {
      const lines = readFileSync(join(network.logDir, 'coordinator.log'), 'utf8').split('\n');
      const line = lines.findLast((one) => one.includes('"kind":"invitation"') && one.includes(email));
      const { pathname, search } = line === undefined ? { pathname: '', search: '' } : new URL((JSON.parse(line) as { link: string }).link);
      path = pathname + search;
      return path;
    })
    .not.toBe('');
  return path;
}
