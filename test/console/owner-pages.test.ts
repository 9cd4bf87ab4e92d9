/** An owner's console session in a browser: approves a code, manages a machine, reads earnings and requests a payout. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { expect, it, onTestFinished } from 'vitest';
import { expectAccessible } from '../support/console/accessible.js';
import { describeInBrowser } from '../support/console/browser.js';
import { askForCode, linkedMachine, newMachine, sendLinkToken, serveJobs, setHighPrice, tokenOf } from '../support/console/machines.js';
import { expectStill, openPage, screenshot } from '../support/console/open-page.js';
import { newPerson, type Person } from '../support/console/people.js';
import { sharedNetwork } from '../support/shared-network.js';

const AGENT = fileURLToPath(new URL('../../apps/provider/dist/main.js', import.meta.url));
/** Console error that a browser prints for a refused request, expected here. */
const REFUSED = [/status of 40[0-9]/];

/** Command of the real agent. `output` grows while the command runs. */
function runAgent(args: readonly string[]): { output(): string; readonly ended: Promise<number | null> } {
  const child = spawn(process.execPath, [AGENT, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString('utf8');
  });
  child.stderr.on('data', (chunk: Buffer) => {
    output += chunk.toString('utf8');
  });
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  onTestFinished(() => void child.kill('SIGKILL'));
  return { output: () => output, ended };
}

const machineOf = async (owner: Person): Promise<{ provider_id: string; name: string | null }[]> =>
  (await owner.call<{ data: { provider_id: string; name: string | null }[] }>('GET', '/console/v1/machines')).data;

/** The open dialog; toasts have the role of a dialog too. */
const dialogOf = (page: Page) => page.locator('.dialog');

async function look(page: Page, name: string): Promise<void> {
  await screenshot(page, name);
  await expectAccessible(page);
}

describeInBrowser('an owner', () => {
  it('links the real agent by its code, sees the machine in the list, and unlinks it', { timeout: 240_000 }, async () => {
    const network = await sharedNetwork();
    const owner = await newPerson(network, { name: 'Grace Hopper' });
    const page = await openPage('/machines', { signedInAs: owner });
    await page.getByRole('heading', { name: 'No machines linked' }).waitFor();
    await look(page, 'machines-empty');

    const dataDir = join(network.dataDir, 'provider-1');
    const flags = ['--data-dir', dataDir, '--coordinator', network.baseUrl];
    const login = runAgent(['login', ...flags, '--no-browser', '--name', 'Mac in the hall']);
    await expect.poll(login.output, { timeout: 90_000 }).toMatch(/\?code=\w{4}-\w{4}/);
    const [, code = ''] = /\?code=(\w{4}-\w{4})/.exec(login.output()) ?? [];

    await page.getByRole('link', { name: 'Enter a code' }).click();
    await page.getByLabel('Code', { exact: true }).fill(code.toLowerCase().replace('-', ' '));
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByRole('heading', { name: 'Link “Mac in the hall” to your account?' }).waitFor();
    await expect.poll(() => new URL(page.url()).search).toBe(`?code=${code}`);
    expect(await page.locator('dl.facts').innerText()).toMatch(/127\.0\.0\.1/);
    await look(page, 'link-waiting');
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByText('Mac in the hall is approved').waitFor();
    await page.getByText('Return to the terminal on the Mac').waitFor();
    expect([await login.ended, login.output()]).toEqual([
      0,
      expect.stringContaining('Linked. Earnings of this machine go to Grace Hopper.'),
    ]);

    await page.getByRole('link', { name: 'View machines' }).click();
    await page.getByRole('link', { name: 'Mac in the hall' }).click();
    await page.getByText('Accepting requests').waitFor();
    await page.getByRole('heading', { name: 'Recommended actions' }).waitFor();
    await page.getByRole('button', { name: 'Pause', exact: true }).click();
    await page.getByText('Paused from the console, until you resume.').waitFor();
    const status = runAgent(['status', '--data-dir', dataDir]);
    await status.ended;
    expect(status.output()).toMatch(/Console +Paused from the console at \d\d:\d\d by Grace Hopper\./);
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.getByRole('button', { name: 'Pause', exact: true }).waitFor();
    await page.getByRole('button', { name: 'Unlink' }).click();
    await dialogOf(page).getByRole('button', { name: 'Unlink' }).click();
    await page.getByRole('heading', { name: 'No machines linked' }).waitFor();
    expect(await machineOf(owner)).toEqual([]);
    // Logout also removes the agent's stored credentials.
    expect(await runAgent(['logout', '--data-dir', dataDir]).ended).toBe(0);
  });

  it('is redirected to sign-in first, and returns to the code', async () => {
    const network = await sharedNetwork();
    const person = await newPerson(network);
    const code = await askForCode(network, 'the Mac in the hall');
    const page = await openPage(`/link?code=${code.user_code.toLowerCase()}`);
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await page.getByLabel('Email address').fill(person.email);
    await page.getByRole('textbox', { name: 'Password' }).fill(person.password);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('the Mac in the hall').first().waitFor();
    await page.getByText(code.user_code).first().waitFor();
    expect(new URL(page.url()).pathname).toBe('/link');
  });

  it('sees why a code is invalid, and denies one', async () => {
    const network = await sharedNetwork();
    const owner = await newPerson(network);
    const page = await openPage('/link?code=AEIO-UAEI', { signedInAs: owner, theme: 'dark', width: 'phone', expectedErrors: REFUSED });
    await page.getByText('No code has “A” in it.').waitFor();
    await look(page, 'link-phone');
    await page.getByLabel('Code', { exact: true }).fill('BBBBBBBB');
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByText('The code BBBB-BBBB is not known').waitFor();
    await look(page, 'link-unknown');

    const asked = await askForCode(network, 'Somebody’s Mac');
    await page.goto(`/link?code=${asked.user_code}`);
    await page.getByRole('button', { name: 'Deny' }).click();
    await page.getByText('Denied', { exact: true }).waitFor();
    await page.reload();
    await page.getByText('This code was denied before').waitFor();
    expect(await machineOf(owner)).toEqual([]);

    const taken = await askForCode(network, 'Mac in the attic');
    await owner.call('POST', `/console/v1/device-codes/${taken.user_code}/approve`, {});
    await page.goto(`/link?code=${taken.user_code}`);
    await page.getByText('This code was approved before').waitFor();
  });

  it('sees placement decisions of a machine, renames it, and sees it disconnect', async () => {
    const network = await sharedNetwork();
    const owner = await newPerson(network);
    const machine = await newMachine(network);
    const code = await askForCode(network, 'Studio');
    const page = await openPage('/machines', { signedInAs: owner });
    await owner.call('POST', `/console/v1/device-codes/${code.user_code}/approve`, {});
    await sendLinkToken(machine, await tokenOf(network, code));
    await serveJobs(network, machine.model, 1);
    // Live update, without a reload.
    await page.getByRole('link', { name: 'Studio' }).waitFor();
    await look(page, 'machines');
    await page.getByRole('link', { name: 'Studio' }).click();
    await page.getByRole('heading', { name: 'Studio', level: 1 }).waitFor();
    await page.getByText('Chosen:', { exact: false }).first().waitFor();
    await page.getByText('This Mac is not enrolled in device management.', { exact: false }).first().waitFor();
    await page.getByText('Verified · simulated machine', { exact: true }).first().waitFor();
    expect(await page.locator('.parts [data-tone="good"]').count()).toBe(0);
    await look(page, 'machine');

    await page.getByRole('button', { name: 'Rename' }).click();
    await dialogOf(page).getByLabel('Name').fill('Mac in the kitchen');
    await expectAccessible(page);
    await dialogOf(page).getByRole('button', { name: 'Save' }).click();
    await page.getByRole('heading', { name: 'Mac in the kitchen', level: 1 }).waitFor();

    machine.agent.leave();
    await page.getByRole('heading', { name: 'Not connected' }).waitFor();
    await look(page, 'machine-away');
    const stranger = await newPerson(network);
    const foreign = await openPage(`/machines/${machine.providerId}`, { signedInAs: stranger, expectedErrors: REFUSED });
    await foreign.getByRole('heading', { name: 'Machine not found' }).waitFor();
    await look(foreign, 'machine-foreign');
  });

  it('controls a machine, and sees refusals and who paused', async () => {
    const network = await sharedNetwork();
    const owner = await newPerson(network);
    const { agent, providerId } = await linkedMachine(network, owner, 'Studio', { remoteControl: { versions: [1], allowed: true } });
    const settings = {
      remote_control: true,
      pause: null as { by: string; until: number | null } | null,
      schedule: { windows: '', time_zone: 'Europe/Berlin' },
      models: [
        { id: 'qwen3-8b', served: true, bytes: 8_700_000_000 },
        { id: 'gemma-3-27b', served: false, bytes: 16_500_000_000 },
      ],
      models_fixed: false,
    };
    const pauseIds: string[] = [];
    agent.socket.on('message', (data: Buffer, isBinary) => {
      const message = isBinary ? null : JSON.parse(data.toString('utf8'));
      if (message?.type !== 'owner_command') return;
      const { command_id, action } = message;
      if (action.kind === 'pause') pauseIds.push(command_id);
      if (action.kind === 'pause') settings.pause = { by: 'console', until: action.until };
      if (action.kind === 'set_schedule') settings.schedule.windows = action.schedule;
      const refusal = action.kind === 'set_model' ? 'last_model' : null;
      agent.send({ type: 'owner_command_result', command_id, refusal, settings });
    });
    agent.send({ type: 'machine_settings', settings });
    const page = await openPage(`/machines/${providerId}`, { signedInAs: owner, expectedErrors: [/ERR_FAILED/] });
    await page.getByLabel('Times').fill('mon-fri 22:00-07:00');
    await page.getByRole('button', { name: 'Save schedule' }).click();
    await page.getByText('Schedule saved').waitFor();
    await page.getByLabel('qwen3-8b').click();
    // The message is shown at the model and in the list of commands.
    await expect.poll(() => page.getByText('A machine serves at least one model.', { exact: false }).count()).toBe(2);
    await look(page, 'machine-control');
    await page.getByLabel('Pause', { exact: true }).selectOption('For 1 hour');
    // After a failed request, the retry sends the same command id.
    let unansweredId = '';
    const commandsPath = `**/machines/${providerId}/commands`;
    await page.route(commandsPath, async (route) => {
      unansweredId = route.request().postDataJSON().command_id;
      await route.abort();
    });
    await page.getByRole('button', { name: 'Pause', exact: true }).click();
    await page.getByText('The machine was not changed.').waitFor();
    await page.unroute(commandsPath);
    await page.getByRole('button', { name: 'Pause', exact: true }).click();
    await page.getByText('Paused from the console, until', { exact: false }).waitFor();
    expect(pauseIds).toEqual([unansweredId]);
    await page.getByRole('button', { name: 'Resume' }).waitFor();

    const phone = await openPage(`/machines/${providerId}`, { signedInAs: owner, theme: 'dark', width: 'phone' });
    agent.send({ type: 'machine_settings', settings: { ...settings, pause: { by: 'machine', until: null } } });
    await phone.getByText('Paused on the Mac').waitFor();
    expect(await phone.getByRole('button', { name: 'Resume' }).count()).toBe(0);
    await look(phone, 'machine-control-phone');
    expect(await phone.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
    agent.send({ type: 'machine_settings', settings: { ...settings, remote_control: false } });
    await phone.getByText('Turned off on the Mac').waitFor();
  });

  it('sees earnings, downloads them as CSV, and withdraws them', async () => {
    const network = await sharedNetwork();
    const owner = await newPerson(network);
    const { model } = await linkedMachine(network, owner, 'Earner');
    const admin = await newPerson(network, { admin: true });
    await setHighPrice(admin, model);
    await serveJobs(network, model, 5);
    const page = await openPage('/earnings', { signedInAs: owner });
    await page.getByRole('link', { name: 'Earner' }).waitFor();
    await page.locator('canvas').waitFor();
    await look(page, 'earnings');
    await expectStill(page);
    await page.getByRole('button', { name: 'Show as a table' }).click();
    await expectAccessible(page);

    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'CSV' }).click()]);
    expect(download.suggestedFilename()).toMatch(/^earnings-\d{4}-\d\d-\d\d-\d{4}-\d\d-\d\d\.csv$/);
    const chunks: Buffer[] = [];
    for await (const chunk of await download.createReadStream()) chunks.push(chunk as Buffer);
    // Two lines if the jobs ended on either side of midnight.
    const [, ...lines] = Buffer.concat(chunks).toString('utf8').trimEnd().split('\r\n');
    expect(lines).toEqual(lines.map(() => expect.stringContaining(',Earner,')));
    const earned = lines.reduce((sum, line) => sum + Number(line.split(',').at(-1)), 0);
    expect(earned).toBeGreaterThan(2_000_000);

    const amount = page.getByLabel('Amount');
    await amount.fill('0.50');
    await page.getByRole('button', { name: 'Withdraw', exact: true }).click();
    await page.getByText('At least $1.00.').waitFor();
    await amount.fill('1000000');
    await page.getByText('At most $', { exact: false }).waitFor();
    await amount.fill('1.50');
    await page.getByRole('button', { name: 'Withdraw', exact: true }).click();
    await dialogOf(page).getByText('The amount is deducted from your balance', { exact: false }).waitFor();
    await look(page, 'withdraw');
    await dialogOf(page).getByRole('button', { name: 'Withdraw $1.50' }).click();
    await page.getByRole('cell', { name: '$1.50' }).waitFor();
    await page.getByRole('table', { name: 'Your withdrawals' }).getByText('Requested', { exact: true }).last().waitFor();
    const { data } = await owner.call<{ data: object[] }>('GET', '/console/v1/withdrawals');
    expect(data).toMatchObject([{ amount_micro_usd: 1_500_000, state: 'requested' }]);
  });

  it('sets up payouts if a payment service pays', async () => {
    const network = await sharedNetwork();
    const owner = await newPerson(network);
    const settings = await owner.call<object>('GET', '/console/v1/settings');
    const answers = [
      { status: 502, json: { error: { message: 'The payment service did not answer. Try again.', code: 'payment_service_failed' } } },
      { status: 200, json: { ready: true, onboarding_url: null } },
      { status: 200, json: { ready: false, onboarding_url: '/machines?from=the-payment-service' } },
    ];
    const page = await openPage('/earnings', {
      signedInAs: owner,
      expectedErrors: [/status of 502/],
      // Stubs the payment service, which this network lacks.
      prepare: async (context) => {
        await context.route('**/console/v1/settings', (route) => route.fulfill({ json: { ...settings, payouts: true } }));
        await context.route('**/console/v1/payout-account', (route) => route.fulfill(answers.shift() ?? { status: 500 }));
      },
    });
    const button = page.getByRole('button', { name: 'Set up payouts' });
    await button.click();
    await page.getByText('The payment service did not answer. Try again.').waitFor();
    await button.click();
    await page.getByText('Payouts are set up.', { exact: false }).waitFor();
    await expectAccessible(page);
    await page.reload();
    await button.click();
    await page.waitForURL(/\/machines\?from=the-payment-service$/);
  });

  it('sees an error when the coordinator does not answer, and recovers with a retry', async () => {
    const network = await sharedNetwork();
    const owner = await newPerson(network);
    const page = await openPage('/link', { signedInAs: owner, expectedErrors: [/ERR_FAILED|ERR_CONNECTION/] });
    // The page polls the list, so requests fail until the click on the retry button.
    await page.context().route('**/console/v1/machines', async (route) => {
      const isRetried = await page.evaluate(() => 'isRetried' in globalThis);
      await (isRetried ? route.continue() : route.abort('failed'));
    });
    await page.getByRole('link', { name: 'Machines', exact: true }).click();
    await page.getByText('Your machines could not be shown').waitFor();
    await look(page, 'machines-failed');
    await page.evaluate(() => document.addEventListener('click', () => Object.assign(globalThis, { isRetried: true }), { capture: true }));
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('heading', { name: 'No machines linked' }).waitFor();
    await page.context().unrouteAll({ behavior: 'wait' });
  });

  it('finds all pages on a phone in the dark theme', async () => {
    const network = await sharedNetwork();
    const owner = await newPerson(network);
    const machine = await linkedMachine(network, owner, 'Pocket');
    await serveJobs(network, machine.model, 1);
    const page = await openPage('/machines', { signedInAs: owner, theme: 'dark', width: 'phone' });
    await page.getByRole('link', { name: 'Pocket' }).waitFor();
    await look(page, 'machines-phone');
    await expectStill(page);
    await page.goto(`/machines/${machine.providerId}`);
    await page.getByRole('heading', { name: 'Trust' }).waitFor();
    await look(page, 'machine-phone');
    await expectStill(page);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
    await page.goto('/earnings');
    await page.locator('canvas').waitFor();
    await look(page, 'earnings-phone');
    await expectStill(page);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
  });
});
