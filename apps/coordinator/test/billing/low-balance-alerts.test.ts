import { createServer } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { listenLocally } from '../../../../test/support/local-server.js';
import { httpMailer, type Mail } from '../../src/accounts/mailer.js';
import { sendLowBalanceAlerts } from '../../src/billing/alert-mails.js';
import { LowBalanceRepository } from '../../src/database/accounts/low-balance-repository.js';
import type { Database } from '../../src/database/tables.js';
import { Browser, PASSWORD } from '../support/console-client.js';
import { describeDatabases, type TestDatabase } from '../support/databases.js';
import { type Harness, startHarness } from '../support/harness.js';
import { addMailedAccount, addOrganisation } from './mailed-accounts.js';

const PAGE = 'https://console.test/balance';
const ORIGIN = 'https://console.test';
const CONSOLE = { publicOrigin: null, authSecret: null, requireEmailVerification: false, mail: null, adminKey: null };
const DAY_MS = 24 * 3_600_000;

describeDatabases('low-balance alerts', (fresh) => {
  let place: TestDatabase;
  let database: Database;
  let alerts: LowBalanceRepository;
  let now: number;
  let mails: Mail[];

  beforeEach(async () => {
    place = await fresh();
    database = await place.open();
    now = 1_800_000_000_000;
    alerts = new LowBalanceRepository({ database, now: () => now });
    mails = [];
  });
  afterEach(async () => {
    await database.destroy();
    await place.remove();
  });

  const add = (id: string, { isVerified = true, suspendedAt = null as number | null } = {}): Promise<void> =>
    addMailedAccount(place, database, { id, now, isVerified, suspendedAt });
  const setBalance = async (account: string, balance: number): Promise<void> => {
    await database
      .insertInto('balances')
      .values({ account, balance, reserved: 0, earned: 0 })
      .onConflict((conflict) => conflict.column('account').doUpdateSet({ balance }))
      .execute();
  };
  const run = (send: (mail: Mail) => void = () => {}): Promise<void> =>
    sendLowBalanceAlerts({
      alerts,
      balancePage: PAGE,
      mailer: {
        send: async (mail) => {
          send(mail);
          mails.push(mail);
        },
      },
    });

  it('go out once when a balance falls below its threshold', async () => {
    await add('ada');
    await setBalance('ada', 6_000_000);
    await alerts.setThreshold('ada', 5_000_000);
    await run();
    expect(mails).toEqual([]);
    await setBalance('ada', 4_200_500);
    await run();
    await run();
    const low = { kind: 'low_balance', to: 'ada@example.com', link: PAGE };
    expect(mails).toEqual([{ ...low, balance: '4.2005', threshold: '5.00' }]);
  });

  it('go out again after the balance was restored, and at most once a day', async () => {
    await add('ada');
    await alerts.setThreshold('ada', 5_000_000);
    await run();
    expect(mails).toMatchObject([{ balance: '0.00' }]);
    await setBalance('ada', 5_000_000);
    await run();
    await setBalance('ada', 4_999_999);
    now += DAY_MS - 1;
    await run();
    expect(mails).toHaveLength(1);
    now += 1;
    await run();
    expect(mails).toHaveLength(2);
    now += DAY_MS;
    await run();
    expect(mails).toHaveLength(2);
  });

  it('of an organisation go to its owners and billing members', async () => {
    for (const id of ['ada', 'ben', 'cem']) await add(id);
    await addOrganisation(database, now);
    await alerts.setThreshold('acme', 5_000_000);
    await run();
    await run();
    // The link selects the organisation in the console.
    expect(mails.map(({ to, link }) => [to, link])).toEqual(['ada', 'cem'].map((id) => [`${id}@example.com`, `${PAGE}?account_id=acme`]));
  });

  it('do not go to unconfirmed addresses, suspended accounts, or after removal', async () => {
    await add('ada', { isVerified: false });
    await add('ben', { suspendedAt: now });
    await add('cem');
    for (const id of ['ada', 'ben', 'cem']) await alerts.setThreshold(id, 1);
    await alerts.setThreshold('cem', null);
    expect(await alerts.threshold('cem')).toBeNull();
    await run();
    expect(mails).toEqual([]);
  });

  it('are sent in the next run if the mail service refuses one', async () => {
    for (const id of ['ada', 'ben']) {
      await add(id);
      await alerts.setThreshold(id, 1_000_000);
    }
    const refuse = (mail: Mail): void => {
      if (mail.to.startsWith('ben')) throw new Error('the mail service answered 503');
    };
    await expect(run(refuse)).rejects.toThrow('503');
    await run();
    expect(mails.map(({ to }) => to)).toEqual(['ada@example.com', 'ben@example.com']);
  });
});

describe('/console/v1/low-balance-alert', () => {
  let harness: Harness;
  afterEach(() => harness.close());
  const path = '/console/v1/low-balance-alert';
  const signUp = async (origin?: string): Promise<Browser> => {
    const browser = new Browser(harness.url);
    if (origin !== undefined) browser.origin = origin;
    expect((await browser.signUp(`${crypto.randomUUID()}@example.com`)).status).toBe(200);
    return browser;
  };

  it("sets, shows and removes the account's own threshold", async () => {
    harness = await startHarness({ config: { console: { ...CONSOLE, publicOrigin: ORIGIN } } });
    const [ada, ben] = [await signUp(ORIGIN), await signUp(ORIGIN)];
    const shown = async (browser: Browser): Promise<unknown> => (await browser.get(path)).json();
    expect(await shown(ada)).toEqual({ available: true, threshold_micro_usd: null });
    const saved = await ada.send('PUT', path, { threshold_micro_usd: 2_500_000 });
    expect([saved.status, await saved.json()]).toEqual([200, { available: true, threshold_micro_usd: 2_500_000 }]);
    expect([await shown(ada), await shown(ben)]).toMatchObject([{ threshold_micro_usd: 2_500_000 }, { threshold_micro_usd: null }]);
    for (const threshold_micro_usd of [0, -1, 1.5, '5', 1e15]) {
      const refused = await ada.send('PUT', path, { threshold_micro_usd });
      expect(refused.status).toBe(400);
      expect(await refused.json()).toMatchObject({ error: { param: 'threshold_micro_usd' } });
    }
    expect((await new Browser(harness.url).get(path)).status).toBe(401);
    expect(await (await ada.send('PUT', path, { threshold_micro_usd: null })).json()).toEqual({
      available: true,
      threshold_micro_usd: null,
    });
    expect(await harness.app.database.selectFrom('low_balance_alerts').selectAll().execute()).toEqual([]);
  });

  it('is removed with the account', async () => {
    harness = await startHarness({ config: { console: { ...CONSOLE, publicOrigin: ORIGIN } } });
    const ada = await signUp(ORIGIN);
    await ada.send('PUT', path, { threshold_micro_usd: 1 });
    expect((await ada.post('/console/auth/delete-user', { password: PASSWORD })).status).toBe(200);
    expect(await harness.app.database.selectFrom('low_balance_alerts').selectAll().execute()).toEqual([]);
  });

  it('is refused by a coordinator that sends no mail', async () => {
    harness = await startHarness({ config: { development: false, console: CONSOLE } });
    const ada = await signUp();
    expect(await (await ada.get(path)).json()).toEqual({ available: false, threshold_micro_usd: null });
    expect((await ada.send('PUT', path, { threshold_micro_usd: 1 })).status).toBe(501);
  });
});

it('reaches the mail service as a text with the amounts and the page', async () => {
  let body: Record<string, string> = {};
  const service = createServer((request, response) => {
    request.on('data', (chunk: Buffer) => {
      body = JSON.parse(chunk.toString());
    });
    request.on('end', () => response.writeHead(204).end());
  });
  const mailer = httpMailer({ url: await listenLocally(service), token: null });
  await mailer.send({ kind: 'low_balance', to: 'ada@example.com', link: PAGE, balance: '4.20', threshold: '5.00' });
  await new Promise((resolve) => void service.close(resolve));
  expect(body).toMatchObject({ kind: 'low_balance', to: 'ada@example.com', subject: 'Your balance is low', link: PAGE });
  expect(body.text).toContain('Your balance is $4.20, below your alert at $5.00.');
  expect(body.text).toContain(PAGE);
});
