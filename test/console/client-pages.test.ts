/** A client's console session in a browser against a running network, from sign-up to a revoked key. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import OpenAI from 'openai';
import type { Page } from 'playwright-core';
import { beforeAll, expect, it } from 'vitest';
import { expectAccessible } from '../support/console/accessible.js';
import { describeInBrowser } from '../support/console/browser.js';
import { expectStill, LOOKS, openPage, screenshot } from '../support/console/open-page.js';
import { newPerson, type Person } from '../support/console/people.js';
import type { DemoNetwork } from '../support/demo-network.js';
import { sharedNetwork } from '../support/shared-network.js';

const PASSWORD = 'correct horse battery staple';
let people = 0;
const newEmail = (): string => `client-${process.pid}-${++people}@example.com`;

describeInBrowser('a client in the console', () => {
  let network: DemoNetwork;

  beforeAll(async () => {
    network = await sharedNetwork();
  });

  it('signs up by keyboard, adds test funds, creates a key, uses it, sees the cost, and revokes the key', async () => {
    const page = await openPage('/sign-up', { expectedErrors: [/401/] });
    await page.getByLabel('Name').focus();
    await page.keyboard.type('Ada Lovelace');
    await page.keyboard.press('Tab');
    await page.keyboard.type('not an address');
    await page.keyboard.press('Tab');
    await page.keyboard.type('short');
    await page.keyboard.press('Enter');
    await page.getByText('Enter a valid email address.').waitFor();
    await page.getByText('A password has at least 10 characters.').waitFor();
    await expectAccessible(page);
    await expect.poll(() => focused(page)).toBe('Email address');
    await retype(page, newEmail());
    await page.keyboard.press('Tab');
    await retype(page, PASSWORD);
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');

    await page.getByRole('heading', { name: 'First steps' }).waitFor();
    await page.getByRole('button', { name: 'Add $10.00 in test funds' }).click();
    await page.getByText('$10.00 added').waitFor();

    await page.getByRole('link', { name: 'API keys' }).click();
    await page.getByText('No keys yet').waitFor();
    await page.getByRole('button', { name: 'Create key' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('laptop');
    await dialog.getByLabel('Spend limit').fill('lots');
    await dialog.getByRole('button', { name: 'Create key' }).click();
    await dialog.getByText(/Enter an amount in US dollars/).waitFor();
    await dialog.getByLabel('Spend limit').fill('2.50');
    await expectAccessible(page);
    await dialog.getByRole('button', { name: 'Create key' }).click();
    await page.getByText('Your new key').waitFor();
    const secret = (await dialog.locator('code').first().textContent()) ?? '';
    expect(secret).toMatch(/^service-/);
    await screenshot(page, 'new-key');
    await dialog.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('dialog', { name: 'Your new key' }).waitFor({ state: 'detached' });
    await page.getByRole('row', { name: /laptop/ }).waitFor();
    expect(await page.content()).not.toContain(secret);

    const client = new OpenAI({ baseURL: `${network.baseUrl}/v1`, apiKey: secret, maxRetries: 0 });
    const messages = [{ role: 'user' as const, content: 'What is the capital of France?' }];
    const answer = await client.chat.completions.create({ model: network.model, messages, temperature: 0, max_tokens: 30 });
    expect(answer.choices[0]?.message.content).toContain('Paris');

    await page.getByRole('link', { name: 'Usage' }).click();
    const row = page.getByRole('row', { name: new RegExp(network.model) });
    await row.waitFor();
    expect(await row.textContent()).toContain('laptop');
    expect(await row.textContent()).toContain(String(answer.usage?.completion_tokens));
    await page.getByLabel('Key', { exact: true }).selectOption('playground');
    await page.getByText('No requests match these filters').waitFor();
    await page.waitForURL(/key=playground/);
    await page.getByLabel('Key', { exact: true }).selectOption({ label: 'laptop' });
    await row.waitFor();
    const download = page.waitForEvent('download');
    await page.getByRole('link', { name: 'Download CSV' }).click();
    const file = await (await download).path();
    const [, line = ''] = readFileSync(file, 'utf8').split('\r\n');
    expect(line).toContain(`${network.model},/v1/chat/completions,laptop`);

    await page.getByRole('link', { name: 'Balance' }).click();
    await page.getByText(/^\$9\.99/).waitFor();

    await page.getByRole('link', { name: 'API keys' }).click();
    await page.getByRole('button', { name: 'Revoke laptop' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke key' }).click();
    await page.getByRole('row', { name: /laptop.*Revoked/ }).waitFor();
    await expect(client.chat.completions.create({ model: network.model, messages })).rejects.toMatchObject({ status: 401 });
  });

  it('sets, exceeds, raises and removes the budget of a key', async () => {
    const person = await newPerson(network, { deposit: 5_000_000 });
    const { secret } = await person.call<{ secret: string }>('POST', '/console/v1/keys', { name: 'laptop' });
    const client = new OpenAI({ baseURL: `${network.baseUrl}/v1`, apiKey: secret, maxRetries: 0 });
    const complete = () => client.completions.create({ model: network.model, prompt: 'The capital of France', max_tokens: 5 });
    await complete();
    const page = await openPage('/keys', { signedInAs: person });
    const row = page.getByRole('row', { name: /laptop/ });
    const dialog = page.locator('.dialog');
    const save = async (budget: string): Promise<void> => {
      await page.getByRole('button', { name: 'Edit laptop' }).click();
      await dialog.getByLabel('Budget', { exact: true }).fill(budget);
      await dialog.getByLabel('Budget resets').selectOption('Every Monday');
      if (budget !== '') await screenshot(page, 'key-budget');
      await dialog.getByRole('button', { name: 'Save' }).click();
      await dialog.waitFor({ state: 'detached' });
    };
    await save('0.000001');
    const meter = row.getByRole('progressbar', { name: 'Budget of laptop spent' });
    await expect.poll(() => meter.getAttribute('value')).toBe('1');
    await expectAccessible(page);
    expect(await row.textContent()).toMatch(/of \$0\.000001 this week.*Resets/);
    await expect(complete()).rejects.toMatchObject({ status: 402, code: 'key_budget_exceeded' });
    await save('2.00');
    await row.getByText('$2.00 this week').waitFor();
    await complete();
    await save('');
    await expect.poll(() => meter.count()).toBe(0);
    await complete();
  });

  it('resets a forgotten password with the link in the log of a development coordinator', async () => {
    const person = await newPerson(network);
    const page = await openPage('/reset-password', { expectedErrors: [/401/] });
    await page.getByLabel('Email address').fill(person.email);
    await page.getByRole('button', { name: 'Send reset link' }).click();
    await page.getByText(/the link is in its log/).waitFor();
    await expectAccessible(page);
    await page.goto(await mailedLink(network, person.email));
    await page.getByLabel('New password').fill('another good password');
    await page.getByRole('button', { name: 'Set new password' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await page.getByLabel('Email address').fill(person.email);
    await page.getByRole('textbox', { name: 'Password' }).fill(person.password);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').waitFor();
    await page.getByRole('textbox', { name: 'Password' }).fill('another good password');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Balance' }).waitFor();
  });

  it('verifies the address, changes the name, signs out other sessions, and deletes the account', async () => {
    const person = await newPerson(network);
    const signIn = { email: person.email, password: person.password };
    const elsewhere = await fetch(`${network.baseUrl}/console/auth/sign-in/email`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        origin: network.baseUrl,
        'user-agent': 'Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0',
      },
      body: JSON.stringify(signIn),
    });
    expect(elsewhere.status).toBe(200);
    const page = await openPage('/account', { signedInAs: person, expectedErrors: [/40[01]/] });
    await page.getByRole('button', { name: 'Send verification email' }).click();
    await page.getByText(/the link is in its log/).waitFor();
    await page.goto(await mailedLink(network, person.email));
    await page.getByText('Verified', { exact: true }).waitFor();
    await page.getByRole('textbox', { name: 'Name' }).fill('Augusta');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('button', { name: 'Augusta' }).waitFor();
    await page.getByText('Firefox on Linux').waitFor();
    await page.getByRole('button', { name: 'Sign out of all other sessions' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Sign out of all other sessions' }).click();
    await expect.poll(() => page.getByText('Firefox on Linux').count()).toBe(0);
    await page.getByRole('button', { name: 'Download data' }).click();
    await page.getByLabel('Your password').fill('wrong password');
    await page.getByRole('dialog').getByRole('button', { name: 'Download' }).click();
    await page.getByText('The password is wrong.').waitFor();
    await page.getByLabel('Your password').fill(person.password);
    const downloading = page.waitForEvent('download');
    await page.getByRole('dialog').getByRole('button', { name: 'Download' }).click();
    const file = await (await downloading).path();
    expect(readFileSync(file, 'utf8')).toContain(person.email);
    await page.getByRole('button', { name: 'Delete account' }).click();
    await page.getByText('Kept for the books, under a random id:').waitFor();
    await page.getByLabel('Your password').fill('wrong password');
    await page.getByRole('button', { name: 'Delete permanently' }).click();
    await page.getByRole('dialog').getByRole('alert').waitFor();
    await page.getByLabel('Your password').fill(person.password);
    await page.getByRole('button', { name: 'Delete permanently' }).click();
    await page.getByText('Account deleted').waitFor();
    await page.getByRole('link', { name: 'Sign in' }).first().waitFor();
  });

  it('sends the exact amount to the payment service, and shows the result on return', async () => {
    const person = await newPerson(network);
    const settings = await person.call<object>('GET', '/console/v1/settings');
    const page = await openPage('/balance', {
      signedInAs: person,
      prepare: async (context) => {
        await context.route('**/console/v1/settings', (route) => route.fulfill({ json: { ...settings, deposits: ['stripe'] } }));
      },
    });
    const deposit = {
      id: 'd1',
      amount_micro_usd: 19_990_000,
      source: 'stripe',
      state: 'open',
      created_at: '2026-01-01T00:00:00Z',
      ended_at: null,
      refunded_micro_usd: 0,
      disputed_at: null,
    };
    let sent: unknown;
    await page.route(/\/console\/v1\/deposits/, async (route) => {
      if (route.request().method() === 'GET') return route.fulfill({ json: { data: [deposit], next_cursor: null } });
      sent = route.request().postDataJSON();
      return route.fulfill({ status: 201, json: { deposit, checkout_url: `${network.baseUrl}/balance?deposit=d1` } });
    });
    await page.getByLabel('Amount in US dollars').fill('0.5');
    await page.getByRole('button', { name: 'Continue to payment' }).click();
    await page.getByText('At least $1.00.').waitFor();
    await page.getByLabel('Amount in US dollars').fill('19.99');
    await page.getByRole('button', { name: 'Continue to payment' }).click();
    await page.getByText('Waiting for your payment of $19.99 to be confirmed.').waitFor();
    expect(sent).toEqual({ amount_micro_usd: 19_990_000 });
    deposit.state = 'paid';
    await page.getByText('$19.99 was added to your balance.').waitFor();
  });

  it('sets a low-balance alert, and turns it off', async () => {
    const person = await newPerson(network);
    const alert = { available: true, threshold_micro_usd: null as number | null };
    const page = await openPage('/balance', {
      signedInAs: person,
      prepare: async (context) => {
        await context.route('**/console/v1/low-balance-alert', (route) => {
          if (route.request().method() === 'PUT') Object.assign(alert, route.request().postDataJSON());
          return route.fulfill({ json: alert });
        });
      },
    });
    const amount = page.getByLabel('Alert below, in US dollars');
    await amount.fill('0');
    await page.getByRole('button', { name: 'Turn on' }).click();
    await page.getByText('The amount must be more than zero.').waitFor();
    await amount.fill('2.50');
    await page.getByRole('button', { name: 'Turn on' }).click();
    await page.getByText('Alert set at $2.50').waitFor();
    expect(alert.threshold_micro_usd).toBe(2_500_000);
    await expectAccessible(page);
    await screenshot(page, 'low-balance-alert');
    await page.getByRole('button', { name: 'Turn off' }).click();
    await page.getByText('Alert turned off').waitFor();
    expect(alert.threshold_micro_usd).toBeNull();
  });

  it('redirects to sign-in, and returns with the query', async () => {
    const person = await newPerson(network);
    const page = await openPage('/usage?from=2026-01-01&to=2026-01-31&key=playground');
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await page.getByLabel('Email address').fill(person.email);
    await page.getByRole('textbox', { name: 'Password' }).fill(person.password);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Usage' }).waitFor();
    expect(await page.getByLabel('From').inputValue()).toBe('2026-01-01');
    expect(await page.getByLabel('Key', { exact: true }).inputValue()).toBe('playground');
  });
});

describeInBrowser('every client page', () => {
  let people: { readonly user: Person; readonly newcomer: Person };

  beforeAll(async () => {
    const network = await sharedNetwork();
    const user = await newPerson(network, { deposit: 10_000_000 });
    const key = { name: 'laptop', spend_limit_micro_usd: 2_500_000, budget_micro_usd: 100 };
    const { secret } = await user.call<{ secret: string }>('POST', '/console/v1/keys', key);
    const client = new OpenAI({ baseURL: `${network.baseUrl}/v1`, apiKey: secret, maxRetries: 0 });
    await client.completions.create({ model: network.model, prompt: 'The capital of France', max_tokens: 5 });
    people = { user, newcomer: await newPerson(network) };
  });

  const PAGES = [
    { who: null, paths: ['/sign-in'] },
    { who: 'newcomer', paths: ['/quick-start'] },
    {
      who: 'user',
      paths: ['/quick-start?request=end-to-end', '/quick-start?feature=verify&program=codex', '/balance', '/usage', '/keys', '/account'],
    },
  ] as const;

  // One browser page for each person, because a fresh one takes twice the processor time.
  it.each(PAGES.flatMap((pages) => LOOKS.map((look) => ({ ...pages, ...look }))))(
    'of $who is accessible and holds still, $theme and $width',
    async ({ who, paths, theme, width }) => {
      const page = await openPage(paths[0], { theme, width, ...(who === null ? {} : { signedInAs: people[who] }) });
      for (const path of paths) {
        if (path !== paths[0]) await page.goto(path);
        await page.locator('main h1').first().waitFor();
        await expect.poll(() => page.locator('[aria-busy="true"], .skeleton, .chart-waiting').count()).toBe(0);
        await screenshot(page, `${path.slice(1).replaceAll(/\W+/g, '-')}-${theme}-${width}`);
        await expectAccessible(page);
        await expectStill(page);
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        expect(overflow, path).toBeLessThanOrEqual(0);
      }
    },
  );
});

describeInBrowser('the quick start', () => {
  it('leads from the page about modes to requests in end-to-end mode', async () => {
    const person = await newPerson(await sharedNetwork(), { deposit: 5_000_000 });
    const page = await openPage('/verify', { signedInAs: person });
    await page.getByRole('link', { name: 'plain or end-to-end' }).click();
    await page.getByRole('heading', { name: 'Plain and end-to-end mode' }).waitFor();
    await page.getByRole('link', { name: 'Set up end-to-end mode' }).click();
    await page.locator('pre', { hasText: 'createVerifiedFetch({ baseURL' }).waitFor();
    await page.getByText('inference-verify proxy --base-url').waitFor();
    await page.locator('pre', { hasText: 'ANTHROPIC_BASE_URL=http://127.0.0.1:8086' }).waitFor();
    await page.getByRole('tab', { name: 'curl' }).click();
    await expect.poll(() => new URL(page.url()).search).toBe('');
    await page.getByRole('tab', { name: 'End-to-end' }).click();
    await expect.poll(() => new URL(page.url()).search).toBe('?request=end-to-end');
  });
});

/** Label of the focused field. */
function focused(page: Page): Promise<string | null> {
  return page.evaluate(() => (document.activeElement as HTMLInputElement | null)?.labels?.[0]?.textContent ?? null);
}

async function retype(page: Page, text: string): Promise<void> {
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.type(text);
}

/** Link in the newest mail to this address, once the log has it. */
async function mailedLink(network: DemoNetwork, email: string): Promise<string> {
  let link: string | undefined;
  await expect
    .poll(() => {
      const lines = readFileSync(join(network.logDir, 'coordinator.log'), 'utf8').split('\n');
      const line = lines.findLast((one) => one.includes('"msg":"mail"') && one.includes(email));
      link = line === undefined ? undefined : (JSON.parse(line) as { link: string }).link;
      return link;
    })
    .toBeDefined();
  return link ?? '';
}
