/** An account that pays its own provider can withdraw nothing. Pending earnings are visible wherever a balance is shown. */
import { type AdminEarningsConcentration, AdminEarningsConcentrationSchema, ConsoleBalanceSchema } from '@inference/formats';
import { type MachineEarnings, MachineEarningsSchema } from '@inference/protocol';
import { Compile } from 'typebox/compile';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { addMachineToken, hashMachineToken, newMachineToken } from '../../src/database/providers/machine-token-repository.js';
import { PAYMENT_SCHEMAS } from '../../src/routes/billing/payment-schemas.js';
import { Browser } from '../support/console-client.js';
import { describeDatabases, startHarnessOn } from '../support/databases.js';
import { type Customer, errorOf, type Harness, NO_RATE_LIMITS } from '../support/harness.js';
import type { ScriptedProvider } from '../support/scripted-provider.js';

const DAY = 86_400_000;

interface BalanceBody {
  readonly balance_micro_usd: number;
  readonly withdrawable_micro_usd: number;
  readonly pending_micro_usd?: number;
  readonly maturing?: readonly { readonly at: string; readonly amount_micro_usd: number }[];
}

describeDatabases('self-dealing', (fresh) => {
  let harness: Harness;
  let people = 0;
  beforeAll(async () => {
    harness = await startHarnessOn(fresh, { config: { rateLimits: NO_RATE_LIMITS, earningsMaturityDays: 7 } });
  });
  afterAll(() => harness.close());

  const balanceOf = async ({ apiKey }: Pick<Customer, 'apiKey'>): Promise<BalanceBody> => {
    const body: unknown = await (await harness.get('/v1/payments/balance', apiKey)).json();
    expect([...Compile(PAYMENT_SCHEMAS.Balance).Errors(body)]).toEqual([]);
    return body as BalanceBody;
  };
  const machineOf = (model: string): Promise<ScriptedProvider> => harness.provider({ models: [model] });
  /** Moves an account's earnings back in time. */
  const wait = (accountId: string, days: number) =>
    harness.app.database
      .updateTable('pending_earnings')
      .set((set) => ({ day: set('day', '-', days) }))
      .where('account', '=', accountId)
      .execute();
  const ask = async ({ apiKey, accountId }: Customer, model: string): Promise<void> => {
    const { balance } = await harness.money(accountId);
    expect((await harness.chat({ model }, { headers: { authorization: `Bearer ${apiKey}` } })).status).toBe(200);
    await harness.until(async () => {
      const { balance: left, reserved } = await harness.money(accountId);
      return left < balance && reserved === 0;
    });
  };
  const owner = async (): Promise<{ browser: Browser } & Customer> => {
    const browser = new Browser(harness.url);
    await browser.signUp(`dealer-${++people}@example.com`);
    const { id } = (await (await browser.get('/console/v1/me')).json()) as { id: string };
    return { browser, accountId: id, apiKey: await harness.addKey(id) };
  };

  it('restores deposited money as deposited money, with the provider linked before or after', async () => {
    for (const linkedFirst of [true, false]) {
      const model = `own/${linkedFirst}-${++people}`;
      const machine = await machineOf(model);
      const dealer = await harness.customer(3_000_000);
      const link = () => harness.app.ledger.linkProvider(machine.providerId, dealer.accountId, Date.now());
      if (linkedFirst) await link();
      for (let jobs = 0; jobs < 3; jobs++) await ask(dealer, model);
      if (!linkedFirst) await link();
      await wait(dealer.accountId, 30);
      const { balance_micro_usd, ...rest } = await balanceOf(dealer);
      expect(balance_micro_usd).toBeGreaterThan(2_900_000);
      expect(balance_micro_usd).toBeLessThan(3_000_000);
      expect(rest).toEqual({ balance_usd: expect.any(String), withdrawable_micro_usd: 0, withdrawable_usd: '0.000000' });
      machine.close();
    }
  });

  it('of two accounts waits for maturity, reports its time, and is shown to operators', async () => {
    const model = `pair/${++people}`;
    const machine = await machineOf(model);
    const { browser, ...earner } = await owner();
    const payer = await harness.customer(3_000_000);
    const token = newMachineToken();
    await addMachineToken(harness.app.database, {
      hash: hashMachineToken(token),
      accountId: earner.accountId,
      machineName: 'Mac',
      now: Date.now(),
    });
    machine.send({ type: 'link', token });
    await harness.until(() => machine.received.some((message) => message.type === 'linked'));
    const begun = Math.floor(Date.now() / DAY);
    await ask(payer, model);
    const ended = Math.floor(Date.now() / DAY);
    const at = (await balanceOf(earner)).maturing?.[0]?.at ?? '';
    expect([begun, ended].map((day) => new Date((day + 8) * DAY).toISOString())).toContain(at);

    const earned = (await harness.money(earner.accountId)).balance;
    expect(earned).toBeGreaterThan(0);
    const waiting = { withdrawable_micro_usd: 0, pending_micro_usd: earned, maturing: [{ at, amount_micro_usd: earned }] };
    expect(await balanceOf(earner)).toMatchObject({ balance_micro_usd: earned, ...waiting });
    const shown = await (await browser.get('/console/v1/balance')).json();
    expect([...Compile(ConsoleBalanceSchema).Errors(shown)]).toEqual([]);
    expect(shown).toMatchObject(waiting);
    const machines = (await (await harness.get('/v1/machine/earnings', token)).json()) as MachineEarnings;
    expect([...Compile(MachineEarningsSchema).Errors(machines)]).toEqual([]);
    expect(machines.account).toEqual({ machines: 1, earned_total_micro_usd: earned, ...waiting });
    const account = await (await harness.get(`/admin/v1/accounts/${earner.accountId}`, harness.adminKey)).json();
    expect(account).toMatchObject({ withdrawable_micro_usd: 0, pending_micro_usd: earned });
    const refused = await browser.post('/console/v1/withdrawals', { amount_micro_usd: 1_000_000 });
    expect([refused.status, (await errorOf(refused)).message]).toEqual([
      409,
      `At most 0.000000 USD can be withdrawn. ${(earned / 1e6).toFixed(6)} USD of earnings are pending and can be withdrawn later.`,
    ]);

    const concentration = async (query: string): Promise<AdminEarningsConcentration> => {
      const body = await (await harness.get(`/admin/v1/earnings/concentration${query}`, harness.adminKey)).json();
      expect([...Compile(AdminEarningsConcentrationSchema).Errors(body)]).toEqual([]);
      return body as AdminEarningsConcentration;
    };
    expect((await concentration('?min_micro_usd=1')).data).toEqual([
      {
        owner: { id: earner.accountId, name: 'Ada', email: expect.stringContaining('@example.com') },
        provider_id: null,
        payer: { id: payer.accountId, name: 'customer', email: null },
        earned_micro_usd: earned,
        owner_earned_micro_usd: earned,
        payer_paid_micro_usd: earned,
        owner_share_percent: 100,
        payer_share_percent: 100,
      },
    ]);
    // By default, only owners with at least a dollar are listed.
    expect((await concentration('')).data).toEqual([]);
    const wrong = await errorOf(await harness.get('/admin/v1/earnings/concentration?days=0', harness.adminKey));
    expect(wrong.message).toBe('days must be a whole number from 1 to 99.');
    for (const query of ['days=0', 'days=100', 'min_share_percent=0', 'min_share_percent=101', 'limit=201', 'min_micro_usd=-1']) {
      const answer = await harness.get(`/admin/v1/earnings/concentration?${query}`, harness.adminKey);
      const { param, message } = await errorOf(answer);
      const [name] = query.split('=');
      expect([query, answer.status, param]).toEqual([query, 400, name]);
      expect(message).toMatch(new RegExp(`^${name} must be a whole number from \\d+ to \\d+\\.$`));
    }
    expect((await harness.get('/admin/v1/earnings/concentration', earner.apiKey)).status).toBe(403);

    await wait(earner.accountId, 8);
    expect(await balanceOf(earner)).toEqual({
      balance_micro_usd: earned,
      balance_usd: expect.any(String),
      withdrawable_micro_usd: earned,
      withdrawable_usd: expect.any(String),
    });
    machine.close();
  });
});
