/** The playground in a browser: streaming, stopping, local verification, and detection of altered responses. */
import type { Page, Route } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { expectAccessible } from '../support/console/accessible.js';
import { describeInBrowser } from '../support/console/browser.js';
import { type OpenPageOptions, openPage, screenshot } from '../support/console/open-page.js';
import { newPerson, type Person } from '../support/console/people.js';
import { type DemoNetwork, startDemoNetwork } from '../support/demo-network.js';
import { LightAgent } from '../support/light/agent.js';
import { promptOf } from '../support/light/script.js';

const SLOW = 'slow-model';
const BREAKING = 'breaking-model';
/** Longer than any test runs. */
const LONG = { words: 50_000, everyMs: 20 };

describeInBrowser('the playground', () => {
  let network: DemoNetwork;
  let dispose: (() => Promise<void>) | undefined;
  let person: Person;
  const agents: LightAgent[] = [];

  beforeAll(async () => {
    ({ network, dispose } = await startDemoNetwork({
      providerArgs: ['--model', 'demo-text', '--model', 'demo-image', '--context', '512'],
    }));
    agents.push(new LightAgent({ url: network.baseUrl, models: [SLOW] }));
    agents.push(new LightAgent({ url: network.baseUrl, models: [BREAKING] }));
    await Promise.all(agents.map(({ registered }) => registered));
    person = await newPerson(network, { deposit: 10_000_000 });
  });
  afterAll(async () => {
    await Promise.all(agents.map((agent) => agent.leave()));
    await dispose?.();
  });

  const open = (options: Partial<OpenPageOptions> = {}): Promise<Page> =>
    openPage('/playground', { baseUrl: network.baseUrl, signedInAs: person, ...options });
  const ask = async (page: Page, text: string, model?: string): Promise<void> => {
    if (model !== undefined) await page.getByLabel('Model').selectOption(model);
    await page.getByRole('textbox', { name: 'Your message' }).fill(text);
    await page.keyboard.press('Enter');
  };
  const lastAnswer = (page: Page) => page.locator('.turn[data-role="assistant"]').last();

  it('shows a verified response with machine, tokens and cost, continues the conversation, and stores nothing', async () => {
    const page = await open();
    await page.getByText(/the page cannot promise end-to-end encryption/).waitFor();
    await expectAccessible(page);
    await page.getByLabel('System prompt').fill('Be brief.');
    await page.getByText('Parameters').click();
    await page.getByLabel('Temperature').fill('hot');
    await page.getByText('Temperature is a number from 0 to 2.').waitFor();
    await page.getByLabel('Temperature').fill('0');
    await page.getByLabel('Seed').fill('7');
    await ask(page, 'What is the capital of France?', network.model);
    const mark = lastAnswer(page).getByRole('button', { name: 'Verified · simulated machine' });
    await mark.waitFor();
    // One verdict, in amber: nothing green beside a simulated machine.
    expect(await lastAnswer(page).locator('.verdict').count()).toBe(1);
    expect(await lastAnswer(page).locator('[data-tone="good"]').count()).toBe(0);
    expect(await lastAnswer(page).textContent()).toMatch(/Paris/);
    await expect.poll(() => lastAnswer(page).textContent()).toMatch(/\d+ → \d+ tokens\$0\.\d+/);
    await screenshot(page, 'playground-verified');
    await mark.click();
    const details = page.getByRole('dialog');
    await details.getByText('The enclave key signed the stated hash.').waitFor();
    await details.getByText(/this machine has a simulated enclave/).waitFor();
    for (const title of ['Who answered', 'What was checked', 'What this does not prove']) {
      await details.getByRole('heading', { name: title }).waitFor();
    }
    await details.getByText('Verified · simulated machine', { exact: true }).first().waitFor();
    expect(await details.locator('.facts').textContent()).toMatch(/Trust level.*, simulated.*Model.*Tokens/);
    await screenshot(page, 'playground-report');
    expect(await details.locator('[data-ok="false"]').count()).toBe(0);
    expect(await details.locator('[data-ok="true"]').count()).toBeGreaterThan(10);
    await expectAccessible(page);
    await page.keyboard.press('Escape');
    await ask(page, 'And of Italy?');
    await expect.poll(() => page.getByRole('button', { name: 'Verified' }).count()).toBe(2);
    const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href, document.cookie]));
    expect(kept).not.toMatch(/France|Paris|Italy|service-/);
    await expectAccessible(page);
    await page.getByRole('button', { name: 'New conversation' }).click();
    await page.getByText('Start a conversation', { exact: true }).waitFor();
  });

  it('shows FAILED for a tampered response, and for a machine whose record names another key', async () => {
    const page = await open();
    const tamper = async (route: Route): Promise<void> => {
      const response = await route.fetch();
      await route.fulfill({ response, body: (await response.text()).replace(/"content":"(?=[^"])/, '"content":"Never! ') });
    };
    await page.route('**/v1/chat/completions', tamper);
    await page.getByText('Parameters').click();
    await page.getByLabel('Temperature').fill('0');
    await ask(page, 'What is the capital of France?', network.model);
    const mark = lastAnswer(page).getByRole('button', { name: 'FAILED' });
    await mark.waitFor();
    expect(await lastAnswer(page).textContent()).toMatch(/Never! /);
    await screenshot(page, 'playground-failed');
    await expectAccessible(page);
    await mark.click();
    await page.getByText('The bytes received are not the bytes that the stated hash was made of.').waitFor();
    await page.keyboard.press('Escape');
    await page.unroute('**/v1/chat/completions', tamper);

    await page.route('**/v1/providers/attestation', async (route) => {
      const response = await route.fetch();
      const feed = (await response.json()) as { providers: { provider_id: string; se_public_key: string }[] };
      const [first, second] = feed.providers;
      if (first === undefined || second === undefined) throw new Error('two machines are expected');
      for (const provider of feed.providers) provider.se_public_key = (provider === first ? second : first).se_public_key;
      await route.fulfill({ response, json: feed });
    });
    await ask(page, 'What is the capital of France?');
    await lastAnswer(page).getByRole('button', { name: 'FAILED' }).waitFor();
  });

  it('stops a response in the page and on the machine', async () => {
    const page = await open();
    const [agent] = agents;
    await ask(page, promptOf(LONG), SLOW);
    await expect.poll(() => lastAnswer(page).textContent()).toMatch(/w{3,}1/);
    await page.getByRole('button', { name: 'Stop' }).click();
    await lastAnswer(page)
      .getByText(/^Stopped\./)
      .waitFor();
    await expect.poll(() => agent?.counts.cancels).toBe(1);
    await page.getByRole('button', { name: 'Send' }).waitFor();
    expect(
      await lastAnswer(page)
        .getByRole('button', { name: /Verified|FAILED/ })
        .count(),
    ).toBe(0);
  });

  it('offers a remedy for a lost machine, no free machine, a lost connection and an insufficient balance', async () => {
    const page = await open({ expectedErrors: [/503|ERR_CONNECTION_RESET/] });
    const [, leaving] = agents;
    await ask(page, promptOf(LONG), BREAKING);
    await expect.poll(() => lastAnswer(page).textContent()).toMatch(/w{3,}1/);
    await leaving?.leave();
    await lastAnswer(page).getByRole('alert').getByText('The response was interrupted').waitFor();
    await expectAccessible(page);
    await page.route('**/v1/chat/completions', (route) =>
      route.fulfill({
        status: 503,
        headers: { 'retry-after': '2', 'content-type': 'application/json' },
        json: {
          error: { message: 'No provider is free to serve this model now.', type: 'server_error', param: null, code: 'no_provider' },
        },
      }),
    );
    await ask(page, 'Hello', network.model);
    await lastAnswer(page).getByText('No machine is free').waitFor();
    await page.unrouteAll();
    await page.route('**/v1/chat/completions', (route) => route.abort('connectionreset'));
    await lastAnswer(page).getByRole('button', { name: 'Try again', exact: true }).click();
    await lastAnswer(page).getByText('Connection lost').waitFor();
    await page.unrouteAll();
    await lastAnswer(page).getByRole('button', { name: 'Try again', exact: true }).click();
    await lastAnswer(page).getByRole('button', { name: 'Verified' }).waitFor();

    const poor = await newPerson(network);
    const broke = await open({ signedInAs: poor, expectedErrors: [/402/] });
    await broke.getByRole('heading', { name: 'First steps' }).waitFor();
    await ask(broke, 'Hello', network.model);
    await lastAnswer(broke).getByText('Insufficient balance').waitFor();
    await lastAnswer(broke).getByRole('link', { name: 'Add test funds' }).waitFor();
    await broke.getByRole('button', { name: /test funds/ }).click();
    await broke.getByText('$10.00 added').waitFor();
    // The question need not be typed again.
    await lastAnswer(broke).getByRole('button', { name: 'Try again', exact: true }).click();
    await lastAnswer(broke).getByRole('button', { name: 'Verified' }).waitFor();
  });

  it('generates a verified image, and shows FAILED for a tampered one', async () => {
    const page = await open();
    await page.getByRole('button', { name: 'Images' }).click();
    await page.getByLabel('Size').selectOption('128x128');
    await page.getByLabel('Seed').fill('1');
    const generate = async (): Promise<void> => {
      await page.getByRole('textbox', { name: 'Image description' }).fill('a red circle on a blue background');
      await page.keyboard.press('Enter');
    };
    await generate();
    await page.getByRole('button', { name: 'Verified' }).waitFor();
    const image = page.getByRole('img', { name: 'a red circle on a blue background' });
    expect(await image.evaluate((element: HTMLImageElement) => [element.naturalWidth, element.naturalHeight])).toEqual([128, 128]);
    await expect.poll(() => page.locator('.image-job').first().textContent()).toMatch(/\$0\.0/);
    await screenshot(page, 'playground-image');
    await expectAccessible(page);
    await page.route(/\.png$/, async (route) => {
      const response = await route.fetch();
      const body = await response.body();
      body[body.length - 20] = (body[body.length - 20] ?? 0) ^ 1;
      await route.fulfill({ response, body });
    });
    await generate();
    const mark = page.locator('.image-job').first().getByRole('button', { name: 'FAILED' });
    await mark.waitFor();
    await mark.click();
    await page.getByText('The receipt names another list of images.').waitFor();
  });

  it('leads a new user from sign-up to a verified response, on a phone in the dark theme', async () => {
    const page = await openPage('/sign-up', { baseUrl: network.baseUrl, theme: 'dark', width: 'phone' });
    await page.getByLabel('Name').fill('Grace');
    await page.getByLabel('Email address').fill(`grace-${process.pid}@example.com`);
    await page.getByRole('textbox', { name: 'Password' }).fill('correct horse battery');
    await page.getByRole('button', { name: 'Create account' }).click();
    await page.getByRole('button', { name: /in test funds/ }).click();
    await page.getByText('$10.00 added').waitFor();
    await page.getByRole('link', { name: 'Open the playground' }).click();
    await page.getByRole('button', { name: 'What is the capital of France?' }).click();
    await lastAnswer(page).getByRole('button', { name: 'Verified' }).waitFor();
    await screenshot(page, 'playground-phone');
    await lastAnswer(page).getByRole('button', { name: 'Verified' }).click();
    await page.getByRole('dialog').getByText('What these words mean').click();
    await page.getByRole('dialog').getByText('SHA-256 that the answer names for its own bytes.').waitFor();
    await screenshot(page, 'playground-report-phone');
    await expectAccessible(page);
    await page.keyboard.press('Escape');
    await expectAccessible(page);
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    expect(overflow).toBeLessThanOrEqual(0);
    await page.goto('/quick-start');
    await page.getByRole('button', { name: 'Create a key and insert it' }).click();
    await page.locator('pre', { hasText: /Bearer service-/ }).waitFor();
    await page.getByRole('tab', { name: 'Anthropic, Python' }).click();
    await page.locator('pre', { hasText: `base_url="${network.baseUrl}"` }).waitFor();
    await expect.poll(() => page.getByRole('heading', { name: 'First steps' }).count()).toBe(0);
  });
});
