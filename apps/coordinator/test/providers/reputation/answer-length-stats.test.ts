import type { ProviderId } from '@inference/protocol';
import { afterEach, expect, test } from 'vitest';
import type { ProviderSlot } from '../../../src/providers/provider-connection.js';
import { AnswerLengthStats, MIN_ANSWERS, MIN_PROVIDERS } from '../../../src/providers/reputation/answer-length-stats.js';
import { type Harness, MODEL, startHarness } from '../../support/harness.js';

const ids = ['a', 'b', 'c', 'd', 'e'].map((name) => name.repeat(32) as ProviderId);
const [padder, ...others] = ids as [ProviderId, ...ProviderId[]];

let harness: Harness | null = null;
afterEach(async () => {
  await harness?.close();
  harness = null;
});

/** Reserves a slot on this provider. */
function slotOn(providerId: ProviderId): ProviderSlot {
  const request = {
    providerSerial: null,
    providerId,
    exclude: new Set<ProviderId>(),
    trustFloor: null,
    work: { promptTokens: 1, completionTokens: 1 },
  };
  const choice = harness?.app.providers.placement.choose(MODEL, request);
  if (choice?.kind !== 'placed') throw new Error('not placed');
  return choice.takeSlot();
}

/** A settled answer that says nothing but its token counts. */
const settled = {
  kind: 'answer_settled',
  model: MODEL,
  completionTokens: 0,
  cachedTokens: 0,
  weightsSha256: undefined,
  prefixes: [],
  sample: null,
} as const;

/** Records this many answers per provider: of the first one with these counts, of the others with usual counts. */
function lengthsWith(hiddenTokens: number, completionTokens: number, providers = ids, answers = MIN_ANSWERS) {
  let now = 0;
  const lengths = new AnswerLengthStats(() => now);
  for (let answer = 0; answer < answers; answer++) {
    for (const id of providers) {
      const usual = { hiddenTokens: 200 + (answer % 3) * 50, completionTokens: 400 + (answer % 5) * 40 };
      lengths.add(id, MODEL, id === padder ? { hiddenTokens, completionTokens } : usual);
    }
  }
  return {
    outlier: (id: ProviderId) => lengths.compare(id, MODEL, () => providers)?.outlier,
    wait: (ms: number) => {
      now += ms;
    },
    lengths,
  };
}

test('a provider that counts far more tokens than the others is an outlier', () => {
  expect(lengthsWith(3000, 3200).outlier(padder)).toBe('hidden_tokens');
  expect(lengthsWith(200, 5000).outlier(padder)).toBe('completion_tokens');
  const { outlier } = lengthsWith(600, 900);
  expect(ids.map(outlier)).toEqual(ids.map(() => null));
  expect(others.map(lengthsWith(3000, 3200).outlier)).toEqual(others.map(() => null));
});

test('no provider is an outlier before enough are measured', () => {
  expect(lengthsWith(8000, 8000, ids, MIN_ANSWERS - 1).outlier(padder)).toBeNull();
  expect(lengthsWith(8000, 8000, ids.slice(0, MIN_PROVIDERS - 1)).outlier(padder)).toBeNull();
  const { lengths } = lengthsWith(8000, 8000);
  expect(lengths.compare(padder, 'another', () => ids)).toBeNull();
});

test('a provider that counts correctly again is no outlier after a while', () => {
  const { lengths, outlier, wait } = lengthsWith(3000, 3200);
  for (let answer = 0; answer < 200; answer++) lengths.add(padder, MODEL, { hiddenTokens: 200, completionTokens: 400 });
  wait(10_000);
  expect(outlier(padder)).toBeNull();
});

test('operators see the lengths of every provider, and the metrics count the outliers', async () => {
  harness = await startHarness();
  const providers = [];
  for (let index = 0; index < MIN_PROVIDERS; index++) providers.push(await harness.provider());
  for (const [index, { providerId }] of providers.entries()) {
    const slot = slotOn(providerId);
    const hiddenTokens = index === 0 ? 3000 : 100;
    for (let answer = 0; answer < MIN_ANSWERS; answer++)
      slot.provider.report({ ...settled, tokenCounts: { hiddenTokens, completionTokens: 3000 } });
    slot.release();
  }
  const list = (await (await harness.get('/admin/v1/providers', harness.adminKey)).json()) as {
    providers: { provider_id: string; answer_lengths: object[] }[];
  };
  const usual = { model: MODEL, answers: MIN_ANSWERS, completion_tokens: 3000, median_hidden_tokens: 100, median_completion_tokens: 3000 };
  for (const [index, { providerId }] of providers.entries()) {
    const shown = list.providers.find(({ provider_id }) => provider_id === providerId)?.answer_lengths;
    const own = index === 0 ? { hidden_tokens: 3000, outlier: 'hidden_tokens' } : { hidden_tokens: 100, outlier: null };
    expect(shown).toEqual([{ ...usual, ...own }]);
  }
  const metrics = await (await harness.get('/metrics', harness.adminKey)).text();
  expect(metrics).toContain('inference_provider_length_outliers{kind="hidden_tokens"} 1');
});

test('answers are counted as they come', async () => {
  harness = await startHarness();
  const { providerId } = await harness.provider();
  expect((await harness.chat()).status).toBe(200);
  expect(harness.app.providers.placement.reports.answerLengths(providerId)).toEqual([
    { model: MODEL, length: expect.objectContaining({ answers: 1, hiddenTokens: 0, completionTokens: 4, outlier: null }) },
  ]);
});
