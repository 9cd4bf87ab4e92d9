/**
 * Compares thousands of random jobs, with duplicates, interleavings and failing transactions, with a simple reference ledger.
 *
 * Every outcome and all final balances must be the same, so that no micro-USD is lost or created.
 */
import type { ProviderId } from '@inference/protocol';
import { expect, it } from 'vitest';
import { seededRandom } from '../../../../../test/support/seeded-random.js';
import type { Ledger } from '../../../src/billing/ledger/ledger.js';
import { LedgerError } from '../../../src/billing/ledger/ledger-error.js';
import { microUsd } from '../../../src/billing/micro-usd.js';
import { checkLedger } from '../../../src/database/ledger/check-ledger.js';
import { pruneHistory } from '../../../src/database/ledger/prune-history.js';
import { describeDatabases } from '../../support/databases.js';
import { type Faults, faultyDatabase } from './faulty-database.js';
import { oneOf, upTo } from './random.js';
import { newJob, openTestLedger, PLAIN_PRICE, reservation, settlement, T0 } from './random-steps.js';
import { ReferenceLedger } from './reference-ledger.js';

const JOBS = Number(process.env.LEDGER_JOBS ?? 2000);
const SEED = Number(process.env.LEDGER_SEED ?? 20_261_126);
const MATURITY_DAYS = 7;
const ACCOUNTS = ['ann', 'bob', 'cid', 'dot'];
const PROVIDERS = ['a', 'b', 'c'].map((digit) => digit.repeat(32) as ProviderId);

describeDatabases('conservation', (fresh) => {
  const runJobs = async (jobs: number, moments: readonly (keyof Faults)[], compare: boolean): Promise<void> => {
    const place = await fresh();
    const real = await place.open();
    const random = seededRandom(SEED);
    const { database, faults } = faultyDatabase(real, moments, 6, seededRandom(SEED + 1));
    const ledger = await openTestLedger(database, {
      providerSharePercent: 87,
      maturityDays: MATURITY_DAYS,
      // Separate reservations have no common order with other steps, which the reference needs.
      separateReservations: !compare,
      retryMs: 60_000,
      onError: () => undefined,
    });
    const run = new Run(ledger, new ReferenceLedger(87, { maturityDays: MATURITY_DAYS, now: T0 }), random);
    for (const account of ACCOUNTS) run.deposit(account);
    for (let begun = 0; begun < jobs; ) {
      for (let burst = 1 + upTo(random, 60); burst > 0 && begun < jobs; burst--, begun++) run.job();
      if (random() < 0.1) run.deposit(oneOf(random, ACCOUNTS));
      if (random() < 0.1) run.withdraw();
      await run.catchUp();
      // Links are separate transactions, so the surrounding steps must have finished.
      if (random() < 0.02) await run.link();
      if (random() < 0.02) await pruneHistory(real, T0 - 90_000_000);
    }
    if (compare) {
      expect(run.differences).toEqual([]);
      await run.compareBalances();
    }
    for (const moment of moments) expect(faults[moment]).toBeGreaterThan(0);
    const { problems, figures } = await checkLedger(real);
    expect(problems).toEqual([]);
    const { paid } = await real
      .selectFrom('withdrawals')
      .select((select) => select.fn.coalesce(select.fn.sum<number>('amount'), select.lit(0)).as('paid'))
      .where('state', '<>', 'rejected')
      .executeTakeFirstOrThrow();
    expect(figures.owed + figures.fees + paid).toBe(run.deposited);
    await ledger.close();
    await real.destroy();
    await place.remove();
  };

  it(`of every micro-dollar over ${JOBS} random jobs, with the outcomes of the reference ledger (LEDGER_SEED=${SEED})`, async () => {
    await runJobs(JOBS, ['before', 'statement', 'within'], true);
  });

  // After a lost reply, the repeated reservation may be decided differently. Outcomes may then differ, but the sums still hold.
  it(`when outcomes are lost after the commit (LEDGER_SEED=${SEED})`, async () => {
    await runJobs(JOBS / 5, ['before', 'statement', 'within', 'after'], false);
  });
});

class Run {
  readonly differences: string[] = [];
  deposited = 0;
  readonly #ledger: Ledger;
  readonly #reference: ReferenceLedger;
  readonly #random: () => number;
  readonly #waiting: Promise<void>[] = [];
  readonly #open: ReturnType<typeof newJob>[] = [];
  readonly #withdrawals: string[] = [];
  #count = 0;

  constructor(ledger: Ledger, reference: ReferenceLedger, random: () => number) {
    this.#ledger = ledger;
    this.#reference = reference;
    this.#random = random;
  }

  /** Adds a new job, and acts on one or two earlier ones. */
  job(): void {
    const random = this.#random;
    const account = oneOf(random, ACCOUNTS);
    const promptPerMillion = upTo(random, 3_000_000);
    const begun = reservation({
      accountId: account,
      apiKeyId: `${account}-${upTo(random, 1)}`,
      keySpendLimit: random() < 0.3 ? microUsd(upTo(random, 200_000)) : null,
      price: {
        ...PLAIN_PRICE,
        promptPerMillion: microUsd(promptPerMillion),
        cachedPerMillion: random() < 0.5 ? null : microUsd(upTo(random, promptPerMillion)),
        completionPerMillion: microUsd(upTo(random, 9_000_000)),
        perImage: microUsd(upTo(random, 50)),
      },
      maxPromptTokens: upTo(random, 500),
      maxCompletionTokens: upTo(random, 800),
      images: upTo(random, 2),
      at: this.#time(),
    });
    for (let times = random() < 0.1 ? 2 : 1; times > 0; times--) this.#expect(this.#reference.reserve(begun), this.#ledger.reserve(begun));
    this.#open.push(begun.jobId);
    for (let ends = upTo(random, 2); ends > 0; ends--) this.#end(random() < 0.02 ? newJob() : oneOf(random, this.#open));
    if (this.#open.length > 200) this.#open.shift();
  }

  deposit(accountId: string): void {
    const deposit = {
      eventId: `d${this.#count++}`,
      accountId,
      amount: microUsd(1 + upTo(this.#random, 200_000)),
      source: 'stripe',
      at: T0,
    } as const;
    this.deposited += deposit.amount;
    for (let times = 1 + upTo(this.#random, 1); times > 0; times--) {
      this.#expect(this.#reference.deposit(deposit), this.#ledger.deposit(deposit));
    }
  }

  withdraw(): void {
    const random = this.#random;
    const request = { id: `w${this.#count++}`, accountId: oneOf(random, ACCOUNTS), amount: microUsd(1 + upTo(random, 5000)), at: T0 };
    const expected = this.#reference.requestWithdrawal(request);
    this.#expect(expected, this.#ledger.requestWithdrawal(request));
    if (expected === 'requested') this.#withdrawals.push(request.id);
    const id = this.#withdrawals[upTo(random, this.#withdrawals.length)] ?? 'none';
    this.#expect(this.#reference.endWithdrawal(id, 'paid'), this.#ledger.endWithdrawal(id, 'paid', T0));
  }

  async link(): Promise<void> {
    const [provider, account] = [oneOf(this.#random, PROVIDERS), oneOf(this.#random, ACCOUNTS)];
    this.#reference.link(provider, account);
    await this.#ledger.linkProvider(provider, account, T0);
  }

  async catchUp(): Promise<void> {
    await Promise.all(this.#waiting.splice(0));
  }

  async compareBalances(): Promise<void> {
    for (const [id, account] of this.#reference.accounts) {
      const { balance, reserved, withdrawable } = await this.#ledger.balance(id);
      const has = account.deposited + account.earned;
      const expected = [has, account.reserved, this.#reference.withdrawable(id)];
      expect([id, balance, reserved, withdrawable]).toEqual([id, ...expected.map(Number)]);
    }
  }

  #end(jobId: ReturnType<typeof newJob>): void {
    const random = this.#random;
    if (random() < 0.3) {
      this.#expect(this.#reference.release(jobId), this.#ledger.release(jobId, this.#time()));
      return;
    }
    const settled = settlement(jobId, {
      providerId: oneOf(random, PROVIDERS),
      promptTokens: upTo(random, 600),
      completionTokens: upTo(random, 900),
      images: upTo(random, 3),
      at: this.#time(),
    });
    this.#expect(this.#reference.settle(settled), this.#ledger.settle(settled));
  }

  #expect(expected: string, actual: Promise<unknown>): void {
    this.#waiting.push(
      actual.then(
        (outcome) => this.#compare(expected, textOf(outcome)),
        (error: unknown) => this.#compare(expected, error instanceof LedgerError ? error.fault : String(error)),
      ),
    );
  }

  /** Jobs that ended long ago may be unknown. */
  #compare(expected: string, actual: string): void {
    const forgotten = actual === 'unknown_job' && /^(already_settled|released_before)/.test(expected);
    if (actual !== expected && !forgotten) this.differences.push(`expected ${expected}, got ${actual}`);
  }

  /** A time in the last forty days or so, so that settlements fall into all windows in random order. */
  #time(): number {
    return this.#random() < 0.7 ? T0 : T0 - upTo(this.#random, 40 * 86_400_000);
  }
}

function textOf(outcome: unknown): string {
  if (typeof outcome === 'boolean') return String(outcome);
  const { kind, ...rest } = outcome as { kind: string; amount?: number; cost?: number; withdrawable?: number; end?: string };
  const detail = rest.amount ?? rest.cost ?? rest.withdrawable ?? rest.end;
  return kind === 'insufficient_balance' || kind === 'key_limit_reached' || detail === undefined ? kind : `${kind} ${detail}`;
}
