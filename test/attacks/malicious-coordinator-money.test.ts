/** Money in end-to-end mode: replays, second responses and false receipts cost the account nothing, and the ledger balances. */
import { apiError } from '@inference/formats';
import type { E2eReceipt } from '@inference/protocol';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { costOf } from '../../apps/coordinator/src/billing/prices/price.js';
import { checkLedger } from '../../apps/coordinator/src/database/ledger/check-ledger.js';
import { MAX_FREE_REFUSALS } from '../../apps/coordinator/src/inference/request/free-refusals.js';
import type { Customer } from '../../apps/coordinator/test/support/harness.js';
import { AttackedNetwork, MODEL } from '../support/attacked-network.js';
import type { LightE2eJob } from '../support/light/e2e-job.js';
import { framesOf, type HonestAnswer, withAnswer } from '../support/malicious-coordinator.js';

const BALANCE = 10_000_000;

let network: AttackedNetwork;
let customer: Customer;
let other: Customer;
let onE2eJob: (job: LightE2eJob) => Promise<void>;

beforeEach(async () => {
  onE2eJob = (job) => job.answer();
  network = await AttackedNetwork.start({ onE2eJob: (job) => onE2eJob(job) });
  customer = await network.harness.customer(BALANCE);
  other = await network.harness.customer(BALANCE);
});
afterEach(async () => {
  await expect.poll(async () => (await network.harness.money(customer.accountId)).reserved).toBe(0);
  await expect.poll(async () => (await network.harness.money(other.accountId)).reserved).toBe(0);
  expect((await checkLedger(network.harness.app.database)).problems).toEqual([]);
  await network.close();
});

const balanceOf = async ({ accountId }: Customer): Promise<number> => (await network.harness.money(accountId)).balance;
const priceOfAnswer = (): number => costOf(network.harness.app.prices.current(MODEL), { promptTokens: 7, completionTokens: 50 });

async function requireCharged(charged: Customer, answerCount: number): Promise<void> {
  await expect.poll(() => balanceOf(charged)).toBe(BALANCE - answerCount * priceOfAnswer());
}

describe.each([false, true])('a sealed request that the coordinator sends again (stream: %s)', (stream) => {
  test('to bill it twice is not answered', async () => {
    let again: HonestAnswer | null = null;
    network.coordinator.become(
      withAnswer(async (answer, { honest }) => {
        again = await honest();
        return answer;
      }),
    );
    expect(await network.ask(stream, { apiKey: customer.apiKey })).toMatchObject({ isComplete: true, verdicts: [{ state: 'verified' }] });
    expect(again).toMatchObject({ status: 409 });
    await requireCharged(customer, 1);
  });

  test('as another job of another account is refused by its provider as replayed', async () => {
    network.coordinator.become(withAnswer((_answer, { honest }) => honest({ apiKey: other.apiKey })));
    const outcome = await network.ask(stream, { apiKey: customer.apiKey, policy: { candidates: 1 } });
    expect(outcome).toMatchObject({ isComplete: false, text: '', error: { code: 'coordinator_said', status: 409 } });
    await requireCharged(customer, 1);
    await requireCharged(other, 0);
    network.requireNoPlaintext();
  });

  test('is answered by another candidate, whose answer cannot continue or replace the first', async () => {
    let recipients: unknown[] = [];
    const mixed = (change: (first: HonestAnswer, second: HonestAnswer) => Uint8Array) =>
      withAnswer(async (first, { honest }) => {
        const second = await honest({ apiKey: other.apiKey });
        recipients = [first, second].map(({ headers }) => headers['inference-e2e-recipient']);
        return { ...first, body: change(first, second) };
      });
    const ask = () => network.ask(stream, { apiKey: customer.apiKey, policy: { candidates: 2 } });
    network.coordinator.become(mixed((first, second) => Buffer.concat([first.body, second.body])));
    expect(await ask()).toMatchObject({ isComplete: false, error: { code: 'coordinator_said' } });
    expect(new Set(recipients).size).toBe(2);
    network.coordinator.become(mixed((_first, second) => second.body));
    expect(await ask()).toMatchObject({ isComplete: false, text: '', error: { code: 'open_failed' } });
    const spliced = (first: HonestAnswer, second: HonestAnswer): Uint8Array => {
      const [nonce, frames] = framesOf(first.body);
      return Buffer.concat([nonce, ...frames.slice(0, 1), ...framesOf(second.body)[1].slice(1)]);
    };
    network.coordinator.become(mixed(spliced));
    expect(await ask()).toMatchObject({ isComplete: false, error: { code: 'open_failed' } });
    network.requireNoPlaintext();
  });
});

describe.each([false, true])('a provider that claims more than it wrote (stream: %s)', (stream) => {
  const usage = { prompt_tokens: 7, completion_tokens: 90, total_tokens: 97 };

  test.each<[string, (receipt: E2eReceipt) => E2eReceipt]>([
    ['response_bytes', (receipt) => ({ ...receipt, response_bytes: 100_000_000 })],
    ['response_bytes, and the tokens that they would allow', (receipt) => ({ ...receipt, response_bytes: 100_000_000, usage })],
    ['tokens beyond max_tokens', (receipt) => ({ ...receipt, usage: { prompt_tokens: 7, completion_tokens: 101, total_tokens: 108 } })],
    [
      'prompt tokens beyond the bytes of the request',
      (receipt) => ({ ...receipt, usage: { ...usage, prompt_tokens: 90_000, total_tokens: 90_090 } }),
    ],
    ['a price of refusals', (receipt) => ({ ...receipt, finish_reason: 'refused' })],
    ['another sealed answer', (receipt) => ({ ...receipt, sealed_response_sha256: '0'.repeat(64) })],
  ])('is not paid: %s', async (_name, receipt) => {
    onE2eJob = (job) => job.answer({ receipt });
    const outcome = await network.ask(stream, { apiKey: customer.apiKey });
    expect(outcome).toMatchObject({ isComplete: false, error: { code: 'coordinator_said' } });
    await requireCharged(customer, 0);
  });
});

test('refusals inside the seal are free, and limited per key', async () => {
  const refusal = apiError('invalid_request', { param: 'messages', message: 'Refused.' });
  onE2eJob = async (job) => {
    job.accept();
    await job.refuse(refusal);
  };
  const ask = () => network.ask(false, { apiKey: customer.apiKey, policy: { candidates: 1 } });
  for (let index = 0; index < MAX_FREE_REFUSALS; index++) {
    expect(await ask()).toMatchObject({ error: { status: 400 }, verdicts: [{ state: 'verified', receipt: { finish_reason: 'refused' } }] });
  }
  expect(await ask()).toMatchObject({ error: { status: 429, code: 'coordinator_said' } });
  await requireCharged(customer, 0);
});
