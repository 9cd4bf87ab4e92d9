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
  await page.getByLabel('Text to verify').fill(typeof value === 'string' ? value : JSON.stringify(value));
  await page.getByRole('button', { name: 'Verify', exact: true }).click();
}

/** The verdict and count of a step. */
function stepOf(page: Page, title: string) {
  return page.locator('details.stage', { has: page.getByText(title, { exact: true }) });
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
    expect(await resultOf(page, 'Device management cross-check')).toBe("Coordinator's word");
    // Every step is collapsed, because none failed.
    expect(await page.locator('details.stage').count()).toBe(4);
    expect(await page.locator('details.stage[open]').count()).toBe(0);
    expect(await stepOf(page, 'Key').locator('summary').textContent()).toMatch(/^Key Passed \d+ checks, all passed$/);
    expect(await stepOf(page, 'Apple certificate').locator('summary').textContent()).toMatch(/Not claimed \d+ checks$/);
    expect(await stepOf(page, 'Device management').locator('summary').textContent()).toMatch(/Not claimed 1 check$/);
    // Green is for real hardware.
    expect(await page.locator('main [data-tone="good"]:not(:has-text("Online"))').count()).toBe(0);
    await page.getByText('Verified · simulated machine').first().waitFor();
    await page.getByRole('listitem').filter({ hasText: 'That the enclave key is in the attested machine' }).waitFor();
    await screenshot(page, 'provider-verified');
    await page.getByText('What these words mean').first().click();
    await page.getByText('The record has no evidence for it.').waitFor();
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
    expect(await stepOf(page, 'Key').getAttribute('open')).not.toBeNull();
    expect(await stepOf(page, 'Device management').getAttribute('open')).toBeNull();
    await page
      .getByText(/It gives "[^"]+"\./)
      .first()
      .waitFor();
    await screenshot(page, 'provider-tampered');
  });
});

describeInBrowser('a saved answer', () => {
  /** An answer of the network, as `curl -i` prints it, with its request. */
  async function curl(stream: boolean): Promise<{ readonly output: string; readonly request: string; readonly jobId: string }> {
    const network = await sharedNetwork();
    const request = JSON.stringify({
      model: network.model,
      messages: [{ role: 'user', content: 'Hello' }],
      max_tokens: 8,
      temperature: 0,
      stream,
    });
    const response = await fetch(`${network.baseUrl}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${network.apiKey}`, 'content-type': 'application/json' },
      body: request,
    });
    const headers = [...response.headers].map(([name, value]) => `${name}: ${value}`);
    const body = await response.text();
    const receipt = response.headers.get('x-inference-receipt') ?? /"receipt":"([^"]+)"/.exec(body)?.[1] ?? '';
    const { job_id: jobId } = JSON.parse(Buffer.from(receipt, 'base64url').toString()) as { job_id: string };
    return { output: ['HTTP/1.1 200 OK', ...headers, '', body].join('\r\n'), request, jobId };
  }

  it.each([
    { stream: false, theme: 'light', width: 'wide' },
    { stream: true, theme: 'dark', width: 'phone' },
  ] as const)('is verified with its headers and its request, stream: $stream', async ({ stream, theme, width }) => {
    const { output, request } = await curl(stream);
    const page = await openPage('/verify', { theme, width });
    await paste(page, output);
    const result = page.locator('.answer-report');
    await result.getByText('Verified · simulated machine', { exact: true }).first().waitFor();
    await result.getByText(/paste the request body too/).waitFor();
    await page.getByText('Options').click();
    await page.getByLabel('Request body').fill(request);
    await page.getByRole('button', { name: 'Verify', exact: true }).click();
    await result.getByText('The receipt names the body of this request.').waitFor();
    expect(await result.locator('[data-ok="false"]').count()).toBe(0);
    await result.getByText(/Anything about hardware/).waitFor();
    await screenshot(page, `verify-answer-${width}-${theme}`);
    await expectAccessible(page);
    expect(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)).toBeLessThanOrEqual(0);
    await page.getByLabel('Request body').fill('{"model":"other"}');
    await page.getByRole('button', { name: 'Verify', exact: true }).click();
    await result.getByText('The receipt names another body.').waitFor();
    await result.getByText('FAILED', { exact: true }).first().waitFor();
  });

  it('fails when a byte of its body differs', async () => {
    const { output } = await curl(false);
    const page = await openPage('/verify');
    await paste(page, output.replace('"assistant"', '"Assistant"'));
    await page.getByText('The bytes received are not the bytes that the stated hash was made of.').waitFor();
    await page.getByText(/Save the answer with curl -i -o/).waitFor();
    await screenshot(page, 'verify-answer-failed');
  });

  it('is verified by its receipt alone, except its bytes', async () => {
    const network = await sharedNetwork();
    const { jobId, request } = await curl(false);
    const receipt = await fetch(`${network.baseUrl}/v1/receipts/${jobId}`, { headers: { authorization: `Bearer ${network.apiKey}` } });
    const page = await openPage('/verify');
    await page.getByText('Options').click();
    await page.getByLabel('Request body').fill(request);
    await paste(page, await receipt.text());
    await page.getByText('The enclave key signed the receipt.').waitFor();
    await page.getByText('The receipt names the body of this request.').waitFor();
    await page.getByText(/a receipt has only their hash/).waitFor();
    await page.getByText('What these words mean').click();
    await page.getByText('Keyed hash in the receipt of a sealed request.').waitFor();
    await screenshot(page, 'verify-receipt');
    await expectAccessible(page);
  });

  it('that is incomplete is refused with what is missing', async () => {
    const page = await verifyPage();
    await paste(page, { choices: [] });
    await page.getByText('This is an answer without its headers').waitFor();
    await paste(page, { receipt: 'x' });
    await page.getByText('/receipt_signature is missing').waitFor();
    await paste(page, 'HTTP/1.1 200 OK\nX-Provider-Id: someone\n\n{}');
    await page.getByText('The header X-Provider-Id is no provider ID').waitFor();
    await expectAccessible(page);
  });
});

describeInBrowser('a saved record', () => {
  it('is verified up to its root, step by step', async () => {
    const page = await verifyPage();
    await paste(page, feedOf(hardwareRecord()));
    await page.getByText(CONSISTENT_SIMULATION).waitFor();
    expect(await stepOf(page, 'Apple certificate').locator('summary').textContent()).toMatch(/Simulated \d+ checks, all passed$/);
    expect(await stepOf(page, 'Device management').locator('summary').textContent()).toMatch(/word 1 check, without evidence$/);
    await stepOf(page, 'Apple certificate').locator('summary').click();
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
    await page.getByLabel('File to verify').setInputFiles({ name: 'feed.json', mimeType: 'application/json', buffer });
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
    await page.getByText('Options').click();
    await page.getByLabel('Verify as of the newest challenge').check();
    await page.getByRole('button', { name: 'Verify', exact: true }).click();
    await page.getByText(/agrees with its evidence|this is a simulation/).waitFor();
    expect(await resultOf(page, 'Answered the newest challenge')).toBe('Reproduced');
  });

  it('is refused with a message when the input is not a record', async () => {
    const page = await verifyPage();
    await page.getByRole('button', { name: 'Verify', exact: true }).click();
    await page.getByText(/Paste a record, an answer or a receipt first/).waitFor();
    await paste(page, '{ broken');
    await page.getByText('The input is not JSON').waitFor();
    await paste(page, { providers: [{}] });
    await page.getByText('This is no attestation feed').waitFor();
    await expectAccessible(page);
  });
});
