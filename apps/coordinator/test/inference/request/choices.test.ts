/** Requests for several choices (`n`): the reservation, and providers whose agents do not support `n`. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { errorOf, type Harness, startHarness } from '../../support/harness.js';
import type { ScriptedJob } from '../../support/scripted-provider.js';

let harness: Harness;
beforeEach(async () => {
  harness = await startHarness();
});
afterEach(() => harness.close());

describe('a request for several choices', () => {
  it('reserves the limit of all choices together', async () => {
    const jobs: ScriptedJob[] = [];
    await harness.provider({ onJob: (job) => void jobs.push(job), register: (register) => ({ ...register, choices: true }) });
    const reservedFor = async (members: Record<string, unknown>) => {
      const response = harness.chat(members);
      const count = jobs.length;
      await harness.until(() => jobs.length > count);
      const { reserved } = await harness.money();
      const job = jobs[count];
      job?.answerHonestly();
      expect((await response).status).toBe(200);
      return { reserved, maxTokens: job?.context.max_tokens };
    };
    const one = await reservedFor({ max_tokens: 100_000 });
    const three = await reservedFor({ max_tokens: 100_000, n: 3 });
    expect([one.maxTokens, three.maxTokens]).toEqual([100_000, 300_000]);
    // The prompt bounds of both bodies differ by a few bytes only, so the factor comes from the completion.
    expect(three.reserved / one.reserved).toBeGreaterThan(2.9);
    expect((await reservedFor({ n: 2 })).maxTokens).toBe(2 * 8192);
    await harness.until(async () => (await harness.money()).reserved === 0);
  });

  it('goes to no agent of an earlier version, and costs nothing without another', async () => {
    const older = await harness.provider();
    const before = await harness.money();
    const response = await harness.chat({ n: 2 });
    expect([response.status, await errorOf(response)]).toEqual([
      503,
      expect.objectContaining({
        code: 'provider_not_available',
        param: 'n',
        message: 'No connected provider of the model test/model-1 generates several choices. Set n to 1.',
      }),
    ]);
    // With routing preferences, the error may name either cause.
    const filtered = await errorOf(await harness.chat({ n: 2, provider: { ignore: ['SOMEBODY'] } }));
    expect(filtered).toMatchObject({
      message: expect.stringMatching(/both matches provider\.ignore and generates several choices\. Set n to 1/),
    });
    expect(await harness.money()).toEqual(before);
    const newer = await harness.provider({ serial: 'NEWER', register: (register) => ({ ...register, choices: true }) });
    for (let count = 0; count < 3; count++) {
      expect((await harness.chat({ n: 2 })).headers.get('x-provider-id')).toBe(newer.providerId);
    }
    expect(older.begunCount).toBe(0);
  });
});
