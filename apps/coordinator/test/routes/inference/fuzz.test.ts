/** Fuzzing: for any request, the coordinator responds as documented, stays alive and serves the next request. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fuzz, sendValidRequests } from '../../../../../test/support/fuzz/run.js';
import { type Harness, MODEL, startHarness } from '../../support/harness.js';

let harness: Harness;
beforeAll(async () => {
  harness = await startHarness();
  await harness.provider({ slots: 16, vision: { max_images: 20, max_image_tokens: 100 } });
});
afterAll(() => harness?.close());

describe('fuzzed requests', () => {
  it('get documented responses, never a server error', async () => {
    const target = { baseUrl: harness.url, apiKey: harness.apiKey, model: MODEL, visionModel: MODEL };
    const { faults, statuses } = await fuzz({ ...target, firstSeed: 1, cases: 800 });
    expect(faults).toEqual([]);
    // A useful mutation mix yields both valid and invalid requests.
    expect(statuses.get(200)).toBeGreaterThan(50);
    expect(statuses.get(400)).toBeGreaterThan(150);
    expect(new Set(await sendValidRequests(target))).toEqual(new Set([200]));
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  it('leave no error and none of their content in the log', () => {
    expect(harness.log.filter((line) => (JSON.parse(line) as { level: number }).level >= 50)).toEqual([]);
    for (const text of [harness.apiKey, 'script>', '127.0.0.1:1/']) expect(harness.log.filter((line) => line.includes(text))).toEqual([]);
  });
});
