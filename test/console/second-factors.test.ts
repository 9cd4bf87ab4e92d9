/** Two-factor authentication and passkeys in the console, with Chromium's virtual authenticator. */
import { createOTP } from '@better-auth/utils/otp';
import { expect, it } from 'vitest';
import { expectAccessible } from '../support/console/accessible.js';
import { describeInBrowser } from '../support/console/browser.js';
import { openPage, screenshot } from '../support/console/open-page.js';
import { newPerson } from '../support/console/people.js';
import { sharedNetwork } from '../support/shared-network.js';

describeInBrowser('second factors', () => {
  it('are added on the account page, asked for at sign-in, and replaced by a passkey', async () => {
    const network = await sharedNetwork();
    const person = await newPerson(network);
    // Browsers accept no IP address as a name for passkeys.
    const baseUrl = network.baseUrl.replace('127.0.0.1', 'localhost');
    const page = await openPage('/account', { signedInAs: person, baseUrl, theme: 'dark', width: 'phone' });
    const client = await page.context().newCDPSession(page);
    await client.send('WebAuthn.enable');
    const options = {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
    } as const;
    const { authenticatorId } = await client.send('WebAuthn.addVirtualAuthenticator', {
      options: { ...options, automaticPresenceSimulation: true },
    });
    const dialog = page.getByRole('dialog');

    await page.getByRole('button', { name: 'Enable two-factor authentication' }).click();
    await dialog.getByLabel('Your password').fill(person.password);
    await dialog.getByRole('button', { name: 'Continue' }).click();
    await dialog.getByRole('img', { name: 'QR code' }).waitFor();
    await screenshot(page, 'two-factor-qr');
    await expectAccessible(page);
    const key = (await dialog.locator('code').first().textContent()) ?? '';
    const code = await createOTP(fromBase32(key)).totp();
    await dialog.getByRole('textbox', { name: 'Code' }).fill(code);
    await dialog.getByRole('button', { name: 'Enable' }).click();
    await dialog.getByText('Save these codes now').waitFor();
    // The printed page contains only the codes.
    await page.emulateMedia({ media: 'print' });
    expect(await page.getByRole('button', { name: 'I saved the codes' }).isVisible()).toBe(false);
    expect(await page.locator('.shell').isVisible()).toBe(false);
    expect(await dialog.locator('pre code').isVisible()).toBe(true);
    await page.emulateMedia({ media: null });
    const backupCode = ((await dialog.locator('pre code').textContent()) ?? '').split('\n')[0] ?? '';
    await screenshot(page, 'two-factor-codes');
    await dialog.getByRole('button', { name: 'I saved the codes' }).click();
    await page.getByText('10 of 10 backup codes left').waitFor();

    await page.getByRole('button', { name: 'Add passkey' }).click();
    await dialog.getByLabel('Name').fill('Attic phone');
    await dialog.getByLabel('Your password').fill(person.password);
    await dialog.getByRole('button', { name: 'Continue' }).click();
    await page.getByRole('button', { name: 'Remove Attic phone' }).waitFor();
    await screenshot(page, 'passkeys');
    await expectAccessible(page);

    // The authenticator ignores passkey autofill in the email field, and answers only after the click on the button.
    const setPresence = (enabled: boolean) => client.send('WebAuthn.setAutomaticPresenceSimulation', { authenticatorId, enabled });
    await setPresence(false);
    await page.exposeFunction('beforeModalRequest', () => setPresence(true));
    await page.addInitScript(callBeforeModalRequests);
    await page.context().clearCookies();
    await page.goto('/sign-in/two-factor?next=%2Faccount');
    await page.getByRole('link', { name: 'Start over' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await screenshot(page, 'sign-in-passkey');
    await page.getByRole('button', { name: 'Use a passkey' }).click();
    await page.getByText('10 of 10 backup codes left').waitFor();

    const other = await openPage('/sign-in?next=%2Faccount', { expectedErrors: [/401/] });
    await other.getByLabel('Email address').fill(person.email);
    await other.getByRole('textbox', { name: 'Password' }).fill(person.password);
    await other.getByRole('button', { name: 'Sign in' }).click();
    await other.getByRole('heading', { name: 'Two-factor authentication' }).waitFor();
    await screenshot(other, 'second-step');
    await expectAccessible(other);
    await other.getByRole('textbox', { name: 'Code' }).fill('000000');
    await other.getByRole('button', { name: 'Verify' }).click();
    await other.getByText('Invalid code').waitFor();
    await other.getByRole('button', { name: 'Use a backup code' }).click();
    await other.getByRole('textbox', { name: 'Backup code' }).fill(backupCode);
    await other.getByRole('button', { name: 'Verify' }).click();
    await other.getByText('9 of 10 backup codes left').waitFor();
    await other.getByRole('button', { name: 'Remove Attic phone' }).waitFor();
  });
});

/** Runs in the page: passkey requests other than suggestions wait for `beforeModalRequest`. */
function callBeforeModalRequests(): void {
  const { beforeModalRequest } = globalThis as unknown as { beforeModalRequest: () => Promise<void> };
  const { credentials } = navigator;
  const get = credentials.get.bind(credentials);
  credentials.get = async (options) => {
    if (options?.mediation !== 'conditional') await beforeModalRequest();
    return get(options);
  };
}

/** Secret of a setup key, RFC 4648 section 6. */
function fromBase32(text: string): string {
  const bits = [...text].map((letter) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(letter).toString(2).padStart(5, '0')).join('');
  return String.fromCharCode(...(bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
}
