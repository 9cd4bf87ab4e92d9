/** Eligibility rules of the scheduler, through the public interfaces of a running coordinator. */
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { errorOf, type Harness, MODEL, startHarness, until } from '../../support/harness.js';
import { SharedHarness } from '../../support/shared-harness.js';

const shared = new SharedHarness();
afterAll(() => shared.close());

let harness: Harness;
afterEach(() => harness.close());

interface ProviderState {
  readonly provider_id: string;
  readonly gate: string | null;
  readonly placements: number;
  readonly share_of_placements: number;
  readonly speeds: readonly { model: string; decode_tps: number; measured_jobs: number }[];
}

async function stateOf(providerId: string): Promise<ProviderState | undefined> {
  const { providers } = (await (await harness.get('/admin/v1/providers', harness.adminKey)).json()) as { providers: ProviderState[] };
  return providers.find(({ provider_id }) => provider_id === providerId);
}

describe('a provider that reports problems', () => {
  it.each([
    ['thermal', 'critical', 'nominal', 'too_hot'],
    ['memory_pressure', 'critical', 'normal', 'no_memory'],
    ['power', 'low_battery', 'mains', 'low_battery'],
  ])('gets no jobs while its %s is %s, and those that are well get them', async (member, bad, good, gate) => {
    harness = await shared.take();
    const [troubled, well] = [await harness.provider({ serial: 'TROUBLED' }), await harness.provider({ serial: 'WELL' })];
    troubled.send({ type: 'load', active_jobs: 0, [member]: bad });
    await until(async () => (await stateOf(troubled.providerId))?.gate === gate);
    for (let count = 0; count < 4; count++) expect((await harness.chat()).headers.get('x-provider-serial')).toBe('WELL');
    expect([troubled.jobs.size, well.jobs.size]).toEqual([0, 4]);
    troubled.send({ type: 'load', active_jobs: 0, [member]: good });
    await until(async () => (await stateOf(troubled.providerId))?.gate === null);
    expect((await harness.chat({ provider_serial: 'TROUBLED' })).status).toBe(200);
  });
});

describe('a model for machines with hardware trust only', () => {
  it('is not served by others, and clients get the reason', async () => {
    harness = await startHarness({ config: { hardwareOnlyModels: [MODEL] } });
    const provider = await harness.provider({ models: [MODEL, 'test/other'] });
    const refused = await harness.chat();
    expect(refused.status).toBe(503);
    expect((await errorOf(refused)).message).toContain('trust level');
    expect((await harness.chat({ model: 'test/other' })).status).toBe(200);
    expect(provider.jobs.size).toBe(1);
  });
});

describe('an operator', () => {
  it('reads which providers may not serve a model, and why', async () => {
    harness = await shared.take();
    const [one, two] = [await harness.provider({ serial: 'ONE' }), await harness.provider({ serial: 'TWO' })];
    two.send({ type: 'draining' });
    const read = async (query: string): Promise<unknown> =>
      (await harness.get(`/admin/v1/placement?model=${encodeURIComponent(MODEL)}${query}`, harness.adminKey)).json();
    const draining = { provider_id: two.providerId, reason: 'draining' };
    await until(async () => ((await read('')) as { not_eligible: unknown[] }).not_eligible.length === 1);
    expect(await read('')).toMatchObject({ serving: true, slots: 4, waiting_requests: 0, not_eligible: [draining] });
    expect(await read('&provider_serial=TWO')).toMatchObject({
      not_eligible: [{ provider_id: one.providerId, reason: 'other_serial' }, draining],
    });
  });

  it('reads why a provider gets no jobs, its share, and its measured throughput', async () => {
    harness = await shared.take();
    const provider = await harness.provider({ slots: 1 });
    expect(await stateOf(provider.providerId)).toMatchObject({
      gate: null,
      placements: 0,
      share_of_placements: 0,
      speeds: [{ measured_jobs: 0 }],
    });
    const content = 'one two three four five six seven eight nine ten eleven twelve';
    expect((await harness.chat({ messages: [{ role: 'user', content }] })).status).toBe(200);
    expect(await stateOf(provider.providerId)).toMatchObject({ gate: null, placements: 1, share_of_placements: 1 });
    harness.app.providers.reputations.recordFault(provider.providerId, 'unverified', 'test');
    expect(await stateOf(provider.providerId)).toMatchObject({ gate: 'quarantined' });
  });
});
