/** An operator's console session in a browser: machines, money and models; other roles get no access. */
import { type AdminRollout, type AdminRolloutList, DEFAULT_ROLLOUT_POLICY } from '@inference/formats';
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { expectAccessible } from '../support/console/accessible.js';
import { describeInBrowser } from '../support/console/browser.js';
import { showHealthHistory } from '../support/console/health-history.js';
import { linkedMachine, newMachine, serveJobs, setHighPrice } from '../support/console/machines.js';
import { expectStill, openPage, screenshot } from '../support/console/open-page.js';
import { newPerson } from '../support/console/people.js';
import type { DemoNetwork } from '../support/demo-network.js';
import { sharedNetwork } from '../support/shared-network.js';

/** The open dialog; toasts have the role of a dialog too. */
const dialogOf = (page: Page) => page.locator('.dialog');

async function look(page: Page, name: string): Promise<void> {
  await screenshot(page, name);
  await expectAccessible(page);
}

/** Changes the range of the charts by keyboard, and reads one as a table. */
async function readCharts(page: Page): Promise<void> {
  const day = page.getByRole('button', { name: '24 hours' });
  await day.press('Enter');
  await expect.poll(() => day.getAttribute('aria-pressed')).toBe('true');
  await page.getByRole('img', { name: /^Latency, last 24 hours\. From .+ to .+\. Median: highest 946 ms/ }).waitFor();
  const machines = page.getByRole('figure', { name: 'Machines, last 24 hours.' });
  await machines.getByRole('button', { name: 'Show as a table' }).press('Enter');
  await machines.getByRole('row').filter({ hasText: '—' }).first().waitFor();
}

const chat = async (network: DemoNetwork, model: string): Promise<number> =>
  (await network.post('/v1/chat/completions', { model, max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] })).status;

const part = (bad: number, count: number) => ({ bad, count, machines: count, value: count === 0 ? null : bad / count });
const rollout = (change: Partial<AdminRollout>): AdminRollout => ({
  version: '1.4.0',
  state: 'active',
  published: true,
  stage: 1,
  stages: 4,
  percent: 1,
  urgent: false,
  started_at: '2026-01-31T12:00:00.000Z',
  stage_started_at: '2026-01-31T12:00:00.000Z',
  ended_at: null,
  reason: null,
  changed_by: 'coordinator',
  waiting_for: '4 of at least 5 machines have updated.',
  checked_at: '2026-01-31T14:00:00.000Z',
  machines: { offered: 6, settled: 4, updating: 1, missing: 0 },
  comparisons: [
    { measure: 'missing', cohort: null, updated: part(0, 5), others: part(0, 15), p: 1, verdict: 'good' },
    {
      measure: 'slower',
      cohort: null,
      updated: { ...part(0, 4), value: 0.98 },
      others: { ...part(0, 15), value: 1.01 },
      p: 0.3,
      verdict: 'not_enough_data',
    },
  ],
  ...change,
});
const ROLLOUTS: AdminRolloutList = {
  rollouts: [
    rollout({}),
    rollout({
      version: '1.3.0',
      state: 'halted',
      ended_at: '2026-01-30T12:00:00.000Z',
      reason: '3 of 3 updated machines did not come back; of the others, 0 of 9.',
      waiting_for: null,
      machines: { offered: 5, settled: 1, updating: 3, missing: 3 },
      comparisons: [
        { measure: 'missing', cohort: null, updated: part(3, 3), others: part(0, 9), p: 0.0045, verdict: 'worse' },
        { measure: 'missing', cohort: { kind: 'chip', name: 'M4' }, updated: part(3, 3), others: part(0, 9), p: 0.0045, verdict: 'worse' },
        { measure: 'failed_requests', cohort: null, updated: part(0, 0), others: part(4, 812), p: 1, verdict: 'not_enough_data' },
      ],
    }),
    rollout({ version: '1.2.0', state: 'complete', stage: 4, ended_at: '2026-01-20T12:00:00.000Z', waiting_for: null, comparisons: [] }),
  ],
  policy: DEFAULT_ROLLOUT_POLICY,
  fleet: {
    machines: 412,
    versions: [
      { version: '1.2.0', machines: 405, share: 0.983 },
      { version: '1.4.0', machines: 5, share: 0.0121 },
      { version: 'other', machines: 2, share: 0.0049 },
    ],
  },
};

const PAGES = [
  ['health', 'Health'],
  ['providers', 'All machines'],
  ['accounts', 'Accounts'],
  ['deposits', 'Deposits'],
  ['withdrawals', 'Withdrawals'],
  ['prices', 'Prices'],
  ['catalogue', 'Model catalogue'],
  ['releases', 'Agent releases'],
  ['incidents', 'Incidents'],
  ['actions', 'Audit log'],
] as const;

describeInBrowser('an operator', () => {
  it('quarantines a machine with a reason that its owner sees, and releases it', async () => {
    const network = await sharedNetwork();
    const owner = await newPerson(network);
    const operator = await newPerson(network, { name: 'Katherine Johnson', admin: true });
    const machine = await linkedMachine(network, owner, 'Attic');
    expect(await chat(network, machine.model)).toBe(200);
    const page = await openPage('/admin/providers', { signedInAs: operator });
    await page.getByLabel('Search').fill(machine.model);
    await page.getByRole('table', { name: 'Connected machines' }).getByRole('link').first().click();
    await page.getByRole('heading', { name: 'Audit log' }).waitFor();
    await page.getByRole('link', { name: owner.email }).waitFor();
    await page.getByRole('button', { name: 'Quarantine' }).click();
    const dialog = dialogOf(page);
    await dialog.getByRole('button', { name: 'Quarantine' }).click();
    await dialog.getByText('Give a reason').waitFor();
    await dialog.getByLabel('Reason').fill('It overheats. Clean its fan, then write to us.');
    await look(page, 'admin-quarantine');
    await dialog.getByRole('button', { name: 'Quarantine' }).click();
    await page.getByText('Quarantined by an operator').waitFor();
    expect(await chat(network, machine.model)).toBe(503);

    const home = await openPage(`/machines/${machine.providerId}`, { signedInAs: owner, width: 'phone', theme: 'dark' });
    await home.getByText('“It overheats. Clean its fan, then write to us.”').waitFor();
    await look(home, 'machine-held');

    await page.getByText('Quarantined machine: “It overheats.', { exact: false }).waitFor();
    await look(page, 'admin-provider');
    await page.getByRole('button', { name: 'Release' }).click();
    await dialog.getByRole('button', { name: 'Release' }).click();
    await page.getByText('Released machine').waitFor();
    expect(await chat(network, machine.model)).toBe(200);
    await home.getByText('Accepting requests').waitFor();
  });

  it('finds an account, adds a deposit, suspends and unsuspends it', async () => {
    const network = await sharedNetwork();
    const operator = await newPerson(network, { admin: true });
    const customer = await newPerson(network, { name: 'Hedy Lamarr' });
    const page = await openPage('/admin/accounts', { signedInAs: operator });
    await page.getByLabel('Search').fill(customer.email.slice(0, 20).toUpperCase());
    await page.getByRole('link', { name: customer.email }).click();
    await page.getByRole('heading', { name: customer.email }).waitFor();
    const dialog = dialogOf(page);
    await page.getByRole('button', { name: 'Add deposit' }).click();
    await dialog.getByLabel('Amount').fill('12.345');
    await dialog.getByLabel('Reference').fill('invoice 7');
    await dialog.getByRole('button', { name: 'Continue' }).click();
    await dialog.getByText('Amounts are in whole cents.').waitFor();
    await dialog.getByText('A reference has', { exact: false }).waitFor();
    await dialog.getByLabel('Amount').fill('12.50');
    await dialog.getByLabel('Reference').fill(`invoice-${customer.accountId}`);
    await dialog.getByRole('button', { name: 'Continue' }).click();
    await look(page, 'admin-deposit');
    await dialog.getByRole('button', { name: 'Deposit $12.50' }).click();
    await page.getByText('Manual', { exact: true }).waitFor();
    expect(await customer.call('GET', '/console/v1/balance')).toMatchObject({ balance_micro_usd: 12_500_000 });

    await page.getByRole('button', { name: 'Suspend' }).click();
    await dialog.getByRole('button', { name: 'Suspend' }).click();
    await page.getByText('Suspended account').waitFor();
    await expect(customer.call('GET', '/console/v1/balance')).rejects.toThrow(/403/);
    await look(page, 'admin-account');
    await page.getByRole('button', { name: 'Unsuspend' }).click();
    await dialog.getByRole('button', { name: 'Unsuspend' }).click();
    await page.getByText('Unsuspended account').waitFor();
    expect(await customer.call('GET', '/console/v1/balance')).toMatchObject({ balance_micro_usd: 12_500_000 });
  });

  it('sets a price and sees its history, adds a catalogue model and removes it', async () => {
    const network = await sharedNetwork();
    const operator = await newPerson(network, { admin: true });
    const { model } = await newMachine(network);
    const page = await openPage('/admin/prices', { signedInAs: operator });
    const dialog = dialogOf(page);
    const row = page.getByRole('row').filter({ hasText: model });
    await page.getByRole('button', { name: 'Add price' }).click();
    await dialog.getByLabel('Model').fill(model);
    await dialog.getByLabel('Input price per 1M tokens').fill('0.25');
    await dialog.getByLabel('Output price per 1M tokens').fill('1.0000005');
    await dialog.getByRole('button', { name: 'Continue' }).click();
    await dialog.getByText('The smallest amount is $0.000001.').waitFor();
    await dialog.getByLabel('Output price per 1M tokens').fill('1.5');
    await dialog.getByRole('button', { name: 'Continue' }).click();
    await dialog.getByRole('button', { name: 'Set price' }).click();
    await row.waitFor();
    await row.getByRole('button', { name: 'Change' }).click();
    await dialog.getByLabel('Output price per 1M tokens').fill('2');
    await dialog.getByRole('button', { name: 'Continue' }).click();
    await dialog.getByText('$1.50 → $2.00').waitFor();
    await look(page, 'admin-price');
    await dialog.getByRole('button', { name: 'Set price' }).click();
    await row.getByText('$2.00').waitFor();
    const prices = (await (await fetch(`${network.baseUrl}/v1/prices`)).json()) as { data: { model: string }[] };
    expect(prices.data.find((price) => price.model === model)).toMatchObject({
      prompt_per_million: 250_000,
      completion_per_million: 2_000_000,
    });
    await row.getByRole('button', { name: 'History of' }).click();
    await dialog.getByText('$1.50').waitFor();
    await look(page, 'admin-price-history');

    await page.goto('/admin/catalogue');
    await page.getByRole('button', { name: 'Add model' }).click();
    await dialog.getByLabel('Id').fill(model);
    await dialog.getByLabel('Name').fill('A light model');
    await dialog.getByLabel('Quantization').fill('8bit');
    await dialog.getByLabel('Files').fill('nonsense');
    await dialog.getByRole('button', { name: 'Save model' }).click();
    await dialog.getByText('Line 1 is not a SHA-256', { exact: false }).waitFor();
    await dialog.getByLabel('Files').fill('a'.repeat(64));
    await look(page, 'admin-catalogue-dialog');
    await dialog.getByRole('button', { name: 'Save model' }).click();
    await row.getByText('A light model').waitFor();
    // The provider's files differ from those in the catalogue, so the provider gets no requests.
    await expect.poll(() => chat(network, model)).toBe(503);
    await row.getByRole('button', { name: 'Remove' }).click();
    await dialog.getByRole('button', { name: 'Remove' }).click();
    await dialog.waitFor({ state: 'detached' });
    await row.waitFor({ state: 'detached' });
    await expect.poll(() => chat(network, model)).toBe(200);
  });

  it('reads why a release was halted, and resumes it after a confirmation', async () => {
    const network = await sharedNetwork();
    const operator = await newPerson(network, { admin: true });
    for (const width of ['wide', 'phone'] as const) {
      const page = await openPage('/admin', { signedInAs: operator, width });
      const acts: string[] = [];
      // The shared network has no release file, so the responses are stubbed.
      await page.route('**/admin/v1/rollouts', (route) => route.fulfill({ json: ROLLOUTS }));
      await page.route('**/admin/v1/rollouts/*/*', (route) => {
        acts.push(new URL(route.request().url()).pathname);
        return route.fulfill({ json: ROLLOUTS.rollouts[0] });
      });
      await page.goto('/admin/releases');
      await page.getByText('3 of 3 updated machines did not come back', { exact: false }).waitFor();
      await page.getByRole('table', { name: 'Updated machines and others, version 1.3.0' }).getByText('Chip M4').waitFor();
      await page.getByText('Next: 4 of at least 5 machines have updated.').waitFor();
      await look(page, `admin-release-halted-${width}`);
      if (width === 'phone') continue;
      await page.getByRole('button', { name: 'Resume: 1.3.0' }).click();
      const dialog = dialogOf(page);
      await dialog.getByText('only later machines count', { exact: false }).waitFor();
      await dialog.getByRole('button', { name: 'Resume' }).click();
      await dialog.waitFor({ state: 'detached' });
      expect(acts).toEqual(['/admin/v1/rollouts/1.3.0/resume']);
      await page.getByRole('button', { name: 'Change policy' }).click();
      await dialog.getByLabel('Stages').fill('5 240 20');
      await dialog.getByRole('button', { name: 'Save' }).click();
      await dialog.getByText('Enter lines such as', { exact: false }).waitFor();
      await look(page, 'admin-release-policy');
      await dialog.getByLabel('Stages').fill('5 240 20\n5 240 20\n100 1440 0');
      await dialog.getByText('Two stages have 5 percent', { exact: false }).waitFor();
    }
  });

  it('rejects a withdrawal and marks one as paid', async () => {
    const network = await sharedNetwork();
    const operator = await newPerson(network, { admin: true });
    const owner = await newPerson(network);
    const { model } = await linkedMachine(network, owner, 'Earner');
    await setHighPrice(operator, model);
    await serveJobs(network, model, 5);
    for (const amount_micro_usd of [1_010_000, 1_020_000]) await owner.call('POST', '/console/v1/withdrawals', { amount_micro_usd });
    const page = await openPage('/admin/withdrawals', { signedInAs: operator });
    const dialog = dialogOf(page);
    const row = (amount: string) => page.getByRole('row').filter({ hasText: owner.accountId }).filter({ hasText: amount });
    const pairs = page.getByRole('table', { name: 'Owners and the account that pays most of their earnings' });
    await pairs.getByRole('row').filter({ hasText: owner.email }).getByText('100%').first().waitFor();
    await look(page, 'admin-withdrawals-asked');
    await row('$1.01').getByRole('button', { name: 'Reject' }).click();
    await dialog.getByText('goes back to the balance', { exact: false }).waitFor();
    await dialog.getByRole('button', { name: 'Reject' }).click();
    // Content behind an open dialog is hidden from roles.
    await dialog.waitFor({ state: 'detached' });
    await row('$1.01').waitFor({ state: 'detached' });
    await row('$1.02').getByRole('button', { name: 'Mark as paid' }).click();
    await dialog.getByRole('button', { name: 'Mark as paid' }).click();
    await dialog.waitFor({ state: 'detached' });
    await row('$1.02').waitFor({ state: 'detached' });
    const { data } = await owner.call<{ data: object[] }>('GET', '/console/v1/withdrawals');
    expect(data).toMatchObject([
      { amount_micro_usd: 1_020_000, state: 'paid' },
      { amount_micro_usd: 1_010_000, state: 'rejected' },
    ]);
  });

  it.each([
    ['light', 'wide'],
    ['dark', 'phone'],
  ] as const)('finds every page accessible and still, %s and %s', { timeout: 240_000 }, async (theme, width) => {
    const network = await sharedNetwork();
    const operator = await newPerson(network, { admin: true });
    const page = await openPage('/admin', { signedInAs: operator, theme, width, prepare: showHealthHistory });
    for (const [path, heading] of PAGES) {
      await page.goto(`/admin/${path}`);
      await page.getByRole('heading', { name: heading, level: 1 }).waitFor();
      await expect.poll(() => page.locator('[aria-busy=true]').count()).toBe(0);
      if (path === 'health') await readCharts(page);
      await look(page, `admin-${path}-${width}`);
      await expectStill(page);
      const fits = await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth);
      expect([path, fits]).toEqual([path, true]);
    }
  });
});

describeInBrowser('a user without operator access', () => {
  it('sees no admin page and no link to one', async () => {
    const network = await sharedNetwork();
    const person = await newPerson(network);
    const page = await openPage('/machines', { signedInAs: person });
    await page.getByRole('link', { name: 'Machines', exact: true }).waitFor();
    expect(await page.getByText('Admin', { exact: true }).count()).toBe(0);
    const asked: string[] = [];
    page.on('request', (request) => asked.push(new URL(request.url()).pathname));
    for (const [path] of PAGES) {
      await page.goto(`/admin/${path}`);
      await page.getByRole('heading', { name: 'Operator access required' }).waitFor();
    }
    await look(page, 'admin-not-yours');
    expect(asked.filter((path) => path.startsWith('/admin/v1'))).toEqual([]);
    for (const path of [
      'providers',
      'health',
      'actions',
      'accounts',
      'deposits',
      'withdrawals',
      'prices',
      'catalogue',
      'incidents',
      'placement',
    ]) {
      await expect(person.call('GET', `/admin/v1/${path}`)).rejects.toThrow(/403/);
    }
    const nobody = await openPage('/admin/accounts');
    await nobody.waitForURL(/\/sign-in/);
  });
});
