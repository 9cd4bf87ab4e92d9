/** Attestation records verified in the browser: from a running network, with certificates, and tampered. */
import type { AttestationFeed } from '@inference/protocol';
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { feedOf, hardwareRecord, NOW, selfSignedRecord } from '../../packages/verifier/test/published-record.js';
import { expectAccessible } from '../support/console/accessible.js';
import { describeInBrowser } from '../support/console/browser.js';
import { openPage, screenshot } from '../support/console/open-page.js';
import { sharedNetwork } from '../support/shared-network.js';

const CONSISTENT_SIMULATION = 'The evidence agrees, but this is a simulation';
const FAILED = 'Failed: the evidence contradicts this record';

async function verifyPage(theme: 'light' | 'dark' = 'light'): Promise<Page> {
  return openPage('/verify', {
    theme,
    width: theme === 'dark' ? 'phone' : 'wide',
    prepare: async (context) => context.clock.setFixedTime(NOW),
  });
}

async function paste(page: Page, value: unknown): Promise<void> {
  await page.getByLabel('JSON of a record or a feed').fill(typeof value === 'string' ? value : JSON.stringify(value));
  await page.getByRole('button', { name: 'Verify', exact: true }).click();
}

/** Result shown beside a claim. */
function resultOf(page: Page, claim: string): Promise<string | null> {
  return page
    .locator('.check-item', { has: page.getByText(claim, { exact: true }) })
    .locator('.badge')
    .first()
    .textContent();
}

describeInBrowser('a connected provider', () => {
  it('is verified against its downloaded record and labelled as a simulation', async () => {
    const { baseUrl } = await sharedNetwork();
    const feed = (await (await fetch(`${baseUrl}/v1/providers/attestation`)).json()) as AttestationFeed;
    const page = await openPage(`/providers/${feed.providers[0]?.provider_id}`);
    await page.getByRole('button', { name: 'Verify', exact: true }).click();
    await page.getByText(CONSISTENT_SIMULATION).waitFor();
    expect(await resultOf(page, 'Serial number')).toBe('Reproduced');
    expect(await resultOf(page, 'Device management cross-check')).toBe("Coordinator's statement");
    await page.getByRole('listitem').filter({ hasText: 'That the enclave key is in the attested machine' }).waitFor();
    await screenshot(page, 'provider-verified');
    await expectAccessible(page);
  });

  it('fails when the downloaded record differs from the signed one', async () => {
    const { baseUrl } = await sharedNetwork();
    const feed = (await (await fetch(`${baseUrl}/v1/providers/attestation`)).json()) as AttestationFeed;
    const record = feed.providers[0];
    const page = await openPage(`/providers/${record?.provider_id}`, {
      prepare: (context) =>
        context.route('**/v1/providers/attestation*', (route) =>
          route.fulfill({ json: { ...feed, providers: [{ ...record, chip_name: 'Apple M4 Ultra' }] } }),
        ),
    });
    await page.getByRole('button', { name: 'Verify', exact: true }).click();
    await page.getByText(FAILED).waitFor();
    expect(await resultOf(page, 'Chip')).toBe('Contradicted');
    await page
      .getByText(/It gives "[^"]+"\./)
      .first()
      .waitFor();
    await screenshot(page, 'provider-tampered');
  });
});

describeInBrowser('a saved record', () => {
  it('is verified up to its root, step by step', async () => {
    const page = await verifyPage();
    await paste(page, feedOf(hardwareRecord()));
    await page.getByText(CONSISTENT_SIMULATION).waitFor();
    const steps = page.getByRole('list', { name: 'Steps of certificate verification' }).getByRole('listitem');
    expect(await steps.allTextContents()).toEqual(
      ['Encoding', 'Signatures and dates', 'Pinned root', 'Extensions', 'Same machine', 'Protections', 'Bound to the key', 'Age'].map(
        (step) => `${step}: ok`,
      ),
    );
    expect(await resultOf(page, 'Apple device attestation')).toBe('Simulated');
    expect(await resultOf(page, 'Trust level')).toBe('Simulated');
    await screenshot(page, 'verify-hardware');
    await expectAccessible(page);
  });

  it('fails at the pinned root when its certificates end elsewhere', async () => {
    const page = await verifyPage();
    await paste(page, hardwareRecord());
    await page.getByText(FAILED).waitFor();
    await page.getByText('Pinned root: refused, anchor name').waitFor();
    expect(await resultOf(page, 'Apple device attestation')).toBe('Contradicted');
  });

  it('fails when tampered with, and names the claim', async () => {
    const page = await verifyPage('dark');
    await paste(page, feedOf({ ...hardwareRecord(), serial_number: 'STOLEN00001' }));
    await page.getByText(FAILED).waitFor();
    expect(await resultOf(page, 'Serial number')).toBe('Contradicted');
    await page.getByText('Same machine: refused, serial mismatch').waitFor();
    await screenshot(page, 'verify-tampered');
    await expectAccessible(page);
  });

  it('can be a file with several records, of which the bad one is marked', async () => {
    const page = await verifyPage();
    const bad = { ...selfSignedRecord(), memory_gb: 512 };
    const buffer = Buffer.from(JSON.stringify(feedOf(selfSignedRecord(), bad)));
    await page.getByLabel('File with a record').setInputFiles({ name: 'feed.json', mimeType: 'application/json', buffer });
    await page.getByText('2 of 2 records checked, 1 failed.').waitFor();
    await page.locator('summary', { hasText: bad.provider_id }).click();
    await page.getByText(FAILED).waitFor();
    await expectAccessible(page);
  });

  it('no longer proves that its machine answers once old, but can be verified as of its newest challenge', async () => {
    const page = await openPage('/verify', { prepare: async (context) => context.clock.setFixedTime(NOW + 3_600_000) });
    await paste(page, feedOf(selfSignedRecord()));
    await page.getByText(FAILED).waitFor();
    expect(await resultOf(page, 'Answered the newest challenge')).toBe('Contradicted');
    await page.getByLabel('Verify as of the newest challenge').check();
    await page.getByRole('button', { name: 'Verify', exact: true }).click();
    await page.getByText(/agrees with its evidence|this is a simulation/).waitFor();
    expect(await resultOf(page, 'Answered the newest challenge')).toBe('Reproduced');
  });

  it('is refused with a message when the input is not a record', async () => {
    const page = await verifyPage();
    await page.getByRole('button', { name: 'Verify', exact: true }).click();
    await page.getByText('Paste a record first').waitFor();
    await paste(page, '{ broken');
    await page.getByText('It is not JSON').waitFor();
    await paste(page, { providers: [{}] });
    await page.getByText('This is no attestation feed').waitFor();
    await expectAccessible(page);
  });
});
