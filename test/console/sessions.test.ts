/** Session handling in the console: sign-out, a session ended elsewhere, a suspended account. */
import { expect, it } from 'vitest';
import { expectAccessible } from '../support/console/accessible.js';
import { describeInBrowser } from '../support/console/browser.js';
import { openPage, screenshot } from '../support/console/open-page.js';
import { newPerson } from '../support/console/people.js';
import { sharedNetwork } from '../support/shared-network.js';

describeInBrowser('a signed-in user', () => {
  it('is named in the menu, and signs out', async () => {
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

  it.each([
    ['menu', '**/signed-in-menu-*.js'],
    ['session', '**/console/v1/session'],
  ])('can sign out although the %s cannot be loaded', async (_what, url) => {
    const person = await newPerson(await sharedNetwork());
    const page = await openPage('/', { signedInAs: person, expectedErrors: [/Failed to load/, /net::/, /fetch dynamically/] });
    await page.route(url, (route) => route.abort());
    await page.reload();
    await page.getByRole('complementary').getByRole('button', { name: 'Sign out' }).click();
    await expect.poll(() => person.call('GET', '/console/v1/me').catch(String)).toContain('401');
  });

  it('is redirected to sign-in when a change is refused after the session ended, and returns', async () => {
    const person = await newPerson(await sharedNetwork());
    const page = await openPage('/keys', { signedInAs: person, expectedErrors: [/401/] });
    await page.getByText('No keys yet').waitFor();
    await page.context().clearCookies();
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByLabel('Name').fill('laptop');
    await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();
    await page.getByLabel('Email address').fill(person.email);
    await page.getByRole('textbox', { name: 'Password' }).fill(person.password);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('No keys yet').waitFor();
  });

  it('is signed out in all tabs, and no tab shows data of the previous account when another one signs in', async () => {
    const network = await sharedNetwork();
    const [first, second] = [await newPerson(network, { name: 'Grace Hopper' }), await newPerson(network, { name: 'Alan Turing' })];
    const page = await openPage('/account', { signedInAs: first, expectedErrors: [/401/] });
    const other = await page.context().newPage();
    await other.goto('/');
    const side = other.getByRole('complementary');
    await side.getByRole('button', { name: first.name }).click();
    await other.getByRole('menuitem', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await other.goto('/sign-in');
    await other.getByLabel('Email address').fill(second.email);
    await other.getByRole('textbox', { name: 'Password' }).fill(second.password);
    await other.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('main').getByText(second.email).first().waitFor();
    await page.getByRole('complementary').getByRole('button', { name: second.name }).waitFor();
    await expect.poll(() => page.getByRole('textbox', { name: 'Name', exact: true }).inputValue()).toBe(second.name);
    expect(await page.getByText(first.email).count()).toBe(0);
  });

  it('sees a note when an operator has suspended the account', async () => {
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
