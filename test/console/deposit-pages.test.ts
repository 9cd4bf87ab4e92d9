/** Receipts of deposits in a browser: billing details, the page, and what is printed. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ConsoleDepositReceipt } from '@inference/formats';
import type { Page, Route } from 'playwright-core';
import { expect, it } from 'vitest';
import { expectAccessible } from '../support/console/accessible.js';
import { describeInBrowser } from '../support/console/browser.js';
import { expectStill, LOOKS, openPage, screenshot } from '../support/console/open-page.js';
import { newPerson } from '../support/console/people.js';
import { sharedNetwork } from '../support/shared-network.js';

const OPERATOR = { name: 'Example Networks GmbH', address: 'Hauptstraße 1\n10115 Berlin', tax_id: 'DE123456789' };

describeInBrowser('the receipt of a deposit', () => {
  it('shows saved billing details, and prints on one page without menus', async () => {
    const person = await newPerson(await sharedNetwork(), { deposit: 25_000_000 });
    const page = await openPage('/balance', { signedInAs: person, prepare: (context) => context.route('**/deposits/*-*', asPayment) });
    const save = page.getByRole('button', { name: 'Save' });
    await page.getByLabel('Address', { exact: true }).fill('line\n'.repeat(9));
    await page.getByLabel('Name or company').fill('Lovelace Ltd');
    await save.click();
    await page.getByText('At most 8 lines.').waitFor();
    await page.getByLabel('Address', { exact: true }).fill('12 St James’s Square\nLondon\n');
    await page.getByLabel('Tax ID').fill('GB123456789');
    await save.click();
    await page.getByText('Billing details saved').waitFor();
    await screenshot(page, 'billing-details');

    await page.getByRole('link', { name: 'View receipt' }).click();
    await page.getByRole('heading', { name: 'Receipt', level: 1 }).waitFor();
    const receipt = page.getByRole('article');
    const text = await receipt.innerText();
    const addresses = [
      OPERATOR.name,
      OPERATOR.address,
      'Lovelace Ltd',
      '12 St James’s Square\nLondon',
      'Tax ID: GB123456789',
      person.email,
    ];
    for (const part of [...addresses, 'Amount paid', '$25.00 USD', 'Payment through Stripe', '$5.00 refunded', person.name])
      expect(text).toContain(part);
    await expect.poll(() => page.title()).toMatch(/^Receipt [0-9a-f-]{36}$/);

    await page.setViewportSize({ width: 794, height: 1123 });
    await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
    expect(await page.getByRole('navigation').or(page.getByRole('button')).or(page.getByRole('link')).count()).toBe(0);
    expect(await receipt.evaluate((element) => getComputedStyle(element).backgroundColor)).toBe('rgb(255, 255, 255)');
    expect(await page.locator('.toasts').evaluate((element) => getComputedStyle(element).display)).toBe('none');
    await screenshot(page, 'receipt-print');
    for (const format of ['A4', 'Letter'] as const) {
      const pdf = await page.pdf({ format });
      writePdf(pdf, `receipt-${format}`);
      expect(pdf.toString('latin1').match(/\/Type \/Page\b/g)).toHaveLength(1);
      expect(pdf.toString('latin1')).not.toContain('/Subtype /Link');
    }

    for (const look of LOOKS) {
      const again = await openPage(new URL(page.url()).pathname, { ...look, signedInAs: person });
      await again.getByRole('article').getByText('Amount credited').waitFor();
      await screenshot(again, `receipt-${look.theme}-${look.width}`);
      await expectAccessible(again);
      await expectStill(again);
      expect(await overflowOf(again)).toBeLessThanOrEqual(0);
    }
    const stranger = await newPerson(await sharedNetwork());
    const refused = await openPage(new URL(page.url()).pathname, { signedInAs: stranger, expectedErrors: [/404/] });
    await refused.getByRole('heading', { name: 'Deposit not found' }).waitFor();
  });
});

/** Changes the response to a Stripe deposit with a partial refund, and adds an operator. The shared network has no payments. */
async function asPayment(route: Route): Promise<void> {
  const response = await route.fetch();
  const { deposit, ...rest } = (await response.json()) as ConsoleDepositReceipt;
  const paid = { ...deposit, source: 'stripe', refunded_micro_usd: 5_000_000 };
  await route.fulfill({ response, json: { ...rest, deposit: paid, operator: OPERATOR } });
}

function overflowOf(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
}

/** Writes the file into the folder `SCREENSHOTS`; no-op without that variable. */
function writePdf(pdf: Buffer, name: string): void {
  const directory = process.env.SCREENSHOTS;
  if (directory === undefined || directory === '') return;
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, `${name}.pdf`), pdf);
}
