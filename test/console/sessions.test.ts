/** What the console's shell knows of who is signed in: the way out, a session that ended elsewhere, a suspended account. */
import { expect, it } from 'vitest';
import { expectAccessible } from '../support/console/accessible.js';
import { describeInBrowser } from '../support/console/browser.js';
import { openPage, screenshot } from '../support/console/open-page.js';
import { newPerson } from '../support/console/people.js';
import { sharedNetwork } from '../support/shared-network.js';

describeInBrowser('somebody who is signed in', () => {
  it('is named, and signs out', async () => {
    const person = await newPerson(await sharedNetwork(), { name: 'Grace Hopper' });
    const page = await openPage('/', { signedInAs: person });
    const side = page.getByRole('complementary');
    await side.getByRole('button', { name: 'Grace Hopper' }).click();
    await page.getByRole('menu').getByText(person.email).waitFor();
    await screenshot(page, 'account-menu');
    await expectAccessible(page);
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await side.getByRole('link', { name: 'Sign in' }).waitFor();
    await expect(person.call('GET', '/console/v1/me')).rejects.toThrow('401');
  });

  it('is told when an operator has suspended the account', async () => {
    const network = await sharedNetwork();
    const person = await newPerson(network);
    const admin = await newPerson(network, { admin: true });
    await admin.call('PATCH', `/admin/v1/accounts/${person.accountId}`, { suspended: true });
    const page = await openPage('/', { signedInAs: person });
    await page.getByText('This account is suspended').waitFor();
    await page.getByRole('complementary').getByRole('link', { name: 'Sign in' }).waitFor();
    await expectAccessible(page);
  });
});
