/** E-mails about budgets of API keys. Also budgets in the console API, and with image and sealed requests. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Mail } from '../../src/accounts/mailer.js';
import { sendKeyBudgetAlerts } from '../../src/billing/alert-mails.js';
import { microUsd } from '../../src/billing/micro-usd.js';
import { addKey, budgetColumns, NO_LIMITS, newKeyText } from '../../src/database/accounts/api-key-repository.js';
import { KeyBudgetRepository } from '../../src/database/accounts/key-budget-repository.js';
import { dayOf } from '../../src/database/ledger/key-budget.js';
import type { BudgetPeriod, Database } from '../../src/database/tables.js';
import { IMAGE_MODEL, imageProvider, startImageHarness } from '../images/pictures.js';
import { Browser } from '../support/console-client.js';
import { describeDatabases, type TestDatabase } from '../support/databases.js';
import { errorOf, type Harness, MODEL } from '../support/harness.js';
import { postSealed, seal } from '../support/sealed-calls.js';
import { addMailedAccount, addOrganisation } from './mailed-accounts.js';

const PAGE = 'https://console.test/keys';
const DAY_MS = 86_400_000;

describeDatabases('key-budget alerts', (fresh) => {
  let place: TestDatabase;
  let database: Database;
  let budgets: KeyBudgetRepository;
  let now: number;
  let mails: Mail[];

  beforeEach(async () => {
    place = await fresh();
    database = await place.open();
    now = Date.UTC(2026, 10, 26, 12);
    budgets = new KeyBudgetRepository({ database, now: () => now });
    mails = [];
  });
  afterEach(async () => {
    await database.destroy();
    await place.remove();
  });

  const budgetOf = (amount: number, period: BudgetPeriod) => ({ amount: microUsd(amount), period });
  /** Account with one key. */
  const add = async (id: string, { isVerified = true, period = 'month' as BudgetPeriod } = {}): Promise<string> => {
    await addMailedAccount(place, database, { id, now, isVerified });
    const limits = { ...NO_LIMITS, budget: budgetOf(10_000_000, period) };
    return addKey(database, { accountId: id, kind: 'api', text: newKeyText(), name: 'laptop', limits, now });
  };
  const spend = async (keyId: string, spent: number): Promise<void> => {
    const sums = { spent, counted_day: dayOf(now), day_spent: spent, week_spent: spent, month_spent: spent };
    await database
      .insertInto('key_spend')
      .values({ api_key_id: keyId, held: 0, spent_pruned: 0, ...sums })
      .onConflict((conflict) => conflict.column('api_key_id').doUpdateSet(sums))
      .execute();
  };
  const refuse = (accountId: string, keyId: string): Promise<unknown> =>
    database
      .insertInto('failed_requests')
      .values({
        job_id: crypto.randomUUID(),
        account_id: accountId,
        api_key_id: keyId,
        model: 'm',
        endpoint: '/v1/chat/completions',
        provider_id: null,
        is_sealed: 0,
        code: 'key_budget_exceeded',
        latency_ms: 1,
        failed_at: now,
      })
      .execute();
  const run = async (): Promise<Mail[]> => {
    mails = [];
    const send = async (mail: Mail): Promise<void> => void mails.push(mail);
    await sendKeyBudgetAlerts({ budgets, keysPage: PAGE, mailer: { send } });
    return mails;
  };

  it('go out once at 80 percent and once when the budget is used up, in each period', async () => {
    const key = await add('ada');
    await spend(key, 7_999_999);
    expect(await run()).toEqual([]);
    await spend(key, 8_000_000);
    const facts = { to: 'ada@example.com', link: PAGE, budget: '10.00', period: 'month', resetsAt: '2026-12-01' };
    const keyName = expect.stringMatching(/^laptop \(service-.{4}…\)$/);
    expect(await run()).toMatchObject([{ kind: 'key_budget_low', spent: '8.00', ...facts, key: keyName }]);
    expect(await run()).toEqual([]);
    await spend(key, 10_000_000);
    expect(await run()).toMatchObject([{ kind: 'key_budget_used_up', spent: '10.00', ...facts }]);
    expect(await run()).toEqual([]);
    now += 5 * DAY_MS;
    expect(await run()).toEqual([]);
    await spend(key, 9_000_000);
    expect(await run()).toMatchObject([{ kind: 'key_budget_low', resetsAt: '2027-01-01' }]);
  });

  it('count a refused request as the end of a budget that is mostly spent', async () => {
    const key = await add('ada', { period: 'week' });
    await spend(key, 1_000_000);
    await refuse('ada', key);
    expect(await run()).toEqual([]);
    await spend(key, 9_900_000);
    expect(await run()).toMatchObject([{ kind: 'key_budget_used_up', spent: '9.90', resetsAt: '2026-11-30' }]);
    // A new budget has its own e-mails. Requests that the earlier budget refused do not count for it.
    now += 1;
    await database
      .updateTable('api_keys')
      .set(budgetColumns(budgetOf(11_000_000, 'week'), now))
      .where('id', '=', key)
      .execute();
    expect(await run()).toMatchObject([{ kind: 'key_budget_low', budget: '11.00' }]);
  });

  it('of an organisation go to its owners and billing members', async () => {
    for (const id of ['ada', 'ben', 'cem']) await add(id);
    await addOrganisation(database, now);
    const limits = { ...NO_LIMITS, budget: budgetOf(10_000_000, 'month') };
    await spend(await addKey(database, { accountId: 'acme', kind: 'api', text: newKeyText(), name: 'laptop', limits, now }), 9_000_000);
    expect((await run()).map(({ to }) => to)).toEqual(['ada@example.com', 'cem@example.com']);
    expect(await run()).toEqual([]);
  });

  it('go to confirmed addresses only, and not for removed budgets', async () => {
    await spend(await add('ada', { isVerified: false }), 10_000_000);
    const key = await add('ben');
    await spend(key, 10_000_000);
    await database.updateTable('api_keys').set(budgetColumns(null, now)).where('id', '=', key).execute();
    expect(await run()).toEqual([]);
  });
});

describe('the budget of a key', () => {
  let harness: Harness;
  afterEach(() => harness.close());

  it('is set, shown, changed and removed at once, and binds text, image and sealed requests', async () => {
    harness = await startImageHarness();
    await imageProvider(harness);
    const provider = await harness.provider({ onSealedJob: (job) => job.answer() });
    const browser = new Browser(harness.url);
    await browser.signUp('ada@example.com');
    await browser.post('/console/v1/deposits/development', { amount_micro_usd: 50_000_000 });
    const { id, secret } = await browser.newKey();
    type Shown = { budget_micro_usd: number | null; budget_spent_micro_usd: number; spent_micro_usd: number; budget_resets_at: string };
    const change = async (fields: object): Promise<Shown> =>
      (await (await browser.send('PATCH', `/console/v1/keys/${id}`, fields)).json()) as Shown;
    const body = { model: MODEL, messages: [{ role: 'user', content: 'hi' }], max_tokens: 50 };
    const chat = (): Promise<Response> => harness.post('/v1/chat/completions', body, { 'x-api-key': secret });
    expect((await chat()).status).toBe(200);
    const shown = await change({ budget_micro_usd: 1, budget_period: 'day' });
    expect(shown).toMatchObject({ budget_micro_usd: 1, budget_period: 'day', budget_spent_micro_usd: shown.spent_micro_usd });
    expect(shown.spent_micro_usd).toBeGreaterThan(1);
    const mailed = { budget_mailed_percent: 80, budget_mailed_at: 1 };
    await harness.app.database.updateTable('api_keys').set(mailed).where('id', '=', id).execute();
    await change({ name: 'Renamed', budget_micro_usd: 1, budget_period: 'day' });
    const marks = harness.app.database.selectFrom('api_keys').select(['budget_mailed_percent', 'budget_mailed_at']).where('id', '=', id);
    expect(await marks.executeTakeFirst()).toEqual(mailed);
    expect(Date.parse(shown.budget_resets_at) - Date.now()).toBeLessThanOrEqual(DAY_MS);
    const refusals = [
      await chat(),
      await harness.post('/v1/images/generations', { model: IMAGE_MODEL, prompt: 'a square' }, { 'x-api-key': secret }),
      await postSealed({ url: harness.url, apiKey: secret }, seal([provider]).bytes),
    ];
    for (const refused of refusals) {
      expect(refused.status).toBe(402);
      expect(await errorOf(refused)).toMatchObject({
        code: 'key_budget_exceeded',
        message: expect.stringContaining('budget of $0.000001 (1 micro-USD) per day'),
      });
    }
    expect(provider.sealedJobs.size).toBe(0);
    await change({ budget_micro_usd: 10_000_000 });
    expect((await chat()).status).toBe(200);
    expect(await change({ budget_micro_usd: null })).toMatchObject({ budget_micro_usd: null, budget_period: null, budget_resets_at: null });
    expect((await chat()).status).toBe(200);
  });
});
