/** Receipts of both versions: accepted from providers that registered the version. Members of version 2 are published. */
import type { Receipt } from '@inference/protocol';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { type Harness, MODEL } from '../../support/harness.js';
import { expectSignedPlain } from '../../support/inference-calls.js';
import type { ScriptedJob } from '../../support/scripted-provider.js';
import { SharedHarness } from '../../support/shared-harness.js';

const shared = new SharedHarness();
afterAll(() => shared.close());

let harness: Harness;
afterEach(() => harness.close());

const [SIGNED, OFFERED] = ['a'.repeat(64), 'b'.repeat(64)];
const computed = { engine: 'llama.cpp b1 cpu', weights_sha256: SIGNED, template_sha256: 'c'.repeat(64), sampling: { temperature: '0.7' } };
const second = (receipt: Receipt): Receipt => ({ ...receipt, v: 2, ...computed });
const without = (member: keyof typeof computed) => (receipt: Receipt) =>
  Object.fromEntries(Object.entries(second(receipt)).filter(([name]) => name !== member)) as Receipt;

describe('a provider', () => {
  it.each([
    ['that names no version signs version 1', undefined, (receipt: Receipt) => receipt],
    ['may name version 1', 1, (receipt: Receipt) => receipt],
    ['that names version 2 signs it', 2, second],
    ['may not know the hash of its weights yet', 2, without('weights_sha256')],
  ] as const)('%s', async (_, receiptVersion, receipt) => {
    harness = await shared.take();
    const onJob = (job: ScriptedJob) => job.answerHonestly(undefined, { receipt });
    const provider = await harness.provider(receiptVersion === undefined ? { onJob } : { onJob, receiptVersion });
    expect(provider.received.find(({ type }) => type === 'welcome')).toMatchObject({ receipts: [2, 1] });
    const { receipt: given } = await expectSignedPlain(await harness.chat(), '/v1/chat/completions');
    expect(given.v).toBe(receiptVersion ?? 1);
  });

  it.each([
    ['receipt.v', 2, (receipt: Receipt) => receipt],
    ['receipt.v', 1, second],
    ['receipt_statement', 2, without('engine')],
    ['receipt_statement', 1, (receipt: Receipt): Receipt => ({ ...receipt, ...computed })],
    ['receipt_statement', 2, (receipt: Receipt): Receipt => ({ ...second(receipt), weights_sha256: 'abc' })],
    ['receipt_statement', 2, (receipt: Receipt): Receipt => ({ ...second(receipt), sampling: { temperature: '1e5' } })],
    ['receipt_statement', 2, (receipt: Receipt): Receipt => ({ ...second(receipt), v: 3 as 2 })],
  ] as const)('is not believed with another: %s of version %i', async (problem, receiptVersion, receipt) => {
    harness = await shared.take();
    const provider = await harness.provider({ receiptVersion, onJob: (job) => job.answerHonestly(undefined, { receipt }) });
    expect((await harness.chat()).status).toBe(502);
    expect(harness.jobLines()).toEqual([expect.objectContaining({ problem, provider: provider.providerId })]);
  });
});

it('the hash of the weights is shown per provider and model: as offered, then as signed', async () => {
  harness = await shared.take();
  const offering = (file_sha256: string) => ({
    receiptVersion: 2 as const,
    register: (register: Parameters<NonNullable<Parameters<Harness['provider']>[0]>['register'] & {}>[0]) => ({
      ...register,
      models: register.models.map((offer) => ({ ...offer, file_sha256 })),
    }),
  });
  const first = await harness.provider({ ...offering(OFFERED), onJob: (job) => job.answerHonestly(undefined, { receipt: second }) });
  const weights = async (id: string) => {
    const { providers } = (await (await harness.get('/v1/providers/attestation', null)).json()) as {
      providers: { provider_id: string; weights: unknown }[];
    };
    return providers.find(({ provider_id }) => provider_id === id)?.weights;
  };
  expect(await weights(first.providerId)).toEqual([{ model: MODEL, sha256: OFFERED, source: 'offer' }]);
  expect((await harness.chat()).status).toBe(200);
  expect(await weights(first.providerId)).toEqual([{ model: MODEL, sha256: SIGNED, source: 'receipt' }]);
  await harness.provider(offering(OFFERED));
  await harness.provider(offering(SIGNED));
  const silent = await harness.provider();
  expect(await weights(silent.providerId)).toEqual([]);
  const expected = [
    { sha256: OFFERED, provider_count: 2 },
    { sha256: SIGNED, provider_count: 1 },
  ];
  const list = (await (await harness.get('/v1/models')).json()) as { data: { metadata: unknown }[] };
  expect(list.data[0]?.metadata).toMatchObject({ provider_count: 4, weights: expected });
  expect(await (await harness.get(`/v1/models/${MODEL}`)).json()).toMatchObject({ metadata: { weights: expected } });
});
