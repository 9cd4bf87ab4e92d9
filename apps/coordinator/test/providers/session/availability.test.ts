/** Providers that report themselves away get no jobs. Owners and operators see the reason, and no fault is recorded. */
import { PROTOCOL_VERSIONS, type ProviderStatusAnswer, ProviderStatusSchema, type ReportedAvailability } from '@inference/protocol';
import { Compile } from 'typebox/compile';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { availabilityBody } from '../../../src/routes/providers/status/provider-status.js';
import { errorOf, type Harness, MODEL, until } from '../../support/harness.js';
import type { ScriptedProvider } from '../../support/scripted-provider.js';
import { SharedHarness } from '../../support/shared-harness.js';

const shared = new SharedHarness();
afterAll(() => shared.close());

let harness: Harness;
afterEach(() => harness?.close());

const described = Compile(ProviderStatusSchema);
const HOUR = 3_600_000;

async function statusOf(provider: ScriptedProvider): Promise<ProviderStatusAnswer> {
  const response = await harness.get('/v1/providers/me', (await provider.next('registered')).token ?? '');
  const body = (await response.json()) as ProviderStatusAnswer;
  expect([...described.Errors(body)]).toEqual([]);
  return body;
}

async function feed(): Promise<{ provider_id: string; status: string }[]> {
  return ((await (await harness.get('/v1/providers/attestation', null)).json()) as { providers: [] }).providers;
}

async function models(): Promise<string[]> {
  return ((await (await harness.get('/v1/models')).json()) as { data: { id: string }[] }).data.map(({ id }) => id);
}

const publish = (provider: ScriptedProvider, reported: ReportedAvailability): void => provider.send({ type: 'availability', ...reported });
const hasGate = (provider: ScriptedProvider, gate: string | null) => until(async () => (await statusOf(provider)).gate === gate);
const registersAway = (reported: ReportedAvailability) => ({
  register: (register: Parameters<NonNullable<NonNullable<Parameters<Harness['provider']>[0]>['register']>>[0]) => ({
    ...register,
    availability: reported,
  }),
});

describe('a provider that goes away', () => {
  it('gets nothing, is shown as away with reason and time, and returns on the same connection', async () => {
    harness = await shared.take();
    const [one, two] = [await harness.provider({ serial: 'ONE' }), await harness.provider({ serial: 'TWO' })];
    const back = Date.now() + HOUR;
    publish(one, { state: 'leaving', reason: 'outside_schedule', until: back });
    await hasGate(one, 'away');
    expect(await statusOf(one)).toMatchObject({
      status: 'away',
      gate: 'away',
      availability: {
        state: 'leaving',
        reason: 'outside_schedule',
        text: 'Outside the schedule that its owner set.',
        until: new Date(back).toISOString(),
      },
      models: [{ id: MODEL, routable: false, gate: 'away' }],
    });
    expect((await statusOf(one)).next_steps[0]).toEqual({ code: 'outside_schedule', text: 'Outside the schedule that its owner set.' });
    await until(() => one.standing?.status === 'away');
    expect(one.standing?.routable).toBe(false);
    for (let count = 0; count < 4; count++) expect((await harness.chat()).headers.get('x-provider-serial')).toBe('TWO');
    const seen = new Map((await feed()).map(({ provider_id, status }) => [provider_id, status]));
    expect([seen.get(one.providerId), seen.get(two.providerId)]).toEqual(['away', 'online']);
    const { decisions } = await statusOf(one);
    expect(decisions[0]).toMatchObject({
      outcome: 'gate',
      reason: 'away',
      text: expect.stringMatching(/^Unavailable: it accepted no requests/),
    });

    publish(one, { state: 'serving' });
    await hasGate(one, null);
    publish(two, { state: 'away', reason: 'paused' });
    await hasGate(two, 'away');
    expect((await harness.chat()).headers.get('x-provider-serial')).toBe('ONE');
    expect((await statusOf(one)).reputation).toMatchObject({ state: 'well', recent_failures: 0 });
    expect((await statusOf(two)).availability).toMatchObject({ state: 'away', until: null, text: expect.stringContaining('resume') });
  });

  it('removes its model from the list, and refuses requests that wait for it at once', async () => {
    harness = await shared.take();
    let finish = (): void => {};
    const provider = await harness.provider({
      slots: 1,
      onJob: async (job) => {
        await new Promise<void>((resolve) => (finish = resolve));
        await job.answerHonestly();
      },
    });
    const running = harness.chat();
    await until(() => provider.jobs.size === 1);
    const waiting = harness.chat();
    await until(async () => (await statusOf(provider)).models[0]?.demand.waiting_requests === 1);
    publish(provider, { state: 'leaving', reason: 'owner_active' });
    const refused = await waiting;
    expect([refused.status, (await errorOf(refused)).code]).toEqual([503, 'no_provider']);
    expect(await models()).toEqual([]);
    const unserved = await harness.chat();
    expect([unserved.status, (await errorOf(unserved)).code]).toEqual([503, 'no_provider']);
    expect(unserved.headers.get('retry-after')).toBe('5');
    publish(provider, { state: 'leaving', reason: 'owner_active', until: Date.now() + 600_000 });
    await until(async () => {
      const seconds = Number((await harness.chat()).headers.get('retry-after'));
      return seconds > 500 && seconds <= 600;
    });
    // Running jobs are completed.
    finish();
    expect((await running).status).toBe(200);
    publish(provider, { state: 'away', reason: 'owner_active' });
    publish(provider, { state: 'serving' });
    await until(async () => (await models()).length === 1);
  });

  it('gets no job when it registers as away', async () => {
    harness = await shared.take();
    const provider = await harness.provider(registersAway({ state: 'away', reason: 'on_battery' }));
    expect(await statusOf(provider)).toMatchObject({ gate: 'away', availability: { state: 'away', reason: 'on_battery' } });
    expect([await models(), provider.jobs.size]).toEqual([[], 0]);
    publish(provider, { state: 'serving' });
    await until(async () => (await models()).length === 1);
    expect((await harness.chat()).status).toBe(200);
  });

  it('refuses jobs on their way, which another provider serves, without a fault', async () => {
    harness = await shared.take();
    let away = true;
    let leave = (): void => {};
    const provider = await harness.provider({
      serial: 'LEAVES',
      onJob: async (job) => {
        if (!away) return job.answerHonestly();
        await new Promise<void>((resolve) => (leave = resolve));
        job.provider.send({ type: 'availability', state: 'leaving', reason: 'paused' });
        job.fail({ code: 'away' });
      },
    });
    const first = harness.chat();
    await until(() => provider.jobs.size === 1);
    const other = await harness.provider({ serial: 'STAYS' });
    leave();
    const answered = await first;
    expect([answered.status, answered.headers.get('x-provider-serial')]).toEqual([200, 'STAYS']);
    expect((await harness.chat()).headers.get('x-provider-serial')).toBe('STAYS');
    expect(await statusOf(provider)).toMatchObject({
      gate: 'away',
      reputation: { state: 'well', recent_failures: 0, held_off_until: null, refused_in_a_row: 0 },
    });
    away = false;
    publish(provider, { state: 'serving' });
    publish(other, { state: 'away', reason: 'paused' });
    await hasGate(other, 'away');
    expect((await harness.chat()).headers.get('x-provider-serial')).toBe('LEAVES');
  });

  it('that reports away only to refuse jobs is paused like a full one', async () => {
    harness = await shared.take();
    const liar = await harness.provider({ serial: 'LIAR', onJob: (job) => job.fail({ code: 'away' }) });
    const asked = harness.chat();
    await until(async () => ((await statusOf(liar)).reputation.refused_in_a_row ?? 0) > 0);
    await harness.provider({ serial: 'HONEST' });
    expect((await asked).headers.get('x-provider-serial')).toBe('HONEST');
    expect((await statusOf(liar)).reputation).toMatchObject({ state: 'well', recent_failures: 0 });
  });
});

describe('the reported availability', () => {
  it('is worded by the coordinator alone, also for unknown codes', () => {
    expect(availabilityBody({ state: 'away', reason: 'a_reason_of_the_future' })).toMatchObject({
      reason: 'a_reason_of_the_future',
      text: expect.stringContaining('does not know'),
    });
    for (const reason of ['constructor', '__proto__', 'to_string']) {
      expect(availabilityBody({ state: 'away', reason }).text).toMatch(/does not know/);
    }
    expect(availabilityBody({ state: 'serving', reason: 'paused', until: 5 })).toEqual({
      state: 'serving',
      reason: null,
      text: null,
      until: null,
    });
  });

  it('ends the session when malformed, and counts as any other message', async () => {
    harness = await shared.take();
    const wrong = await harness.provider();
    wrong.send({ type: 'availability', state: 'perhaps' });
    await wrong.closed;
    expect(wrong.rejection).toBe('bad_message');
    const flood = await harness.provider();
    for (let count = 0; count < 1000; count++) publish(flood, count % 2 === 0 ? { state: 'away', reason: 'paused' } : { state: 'serving' });
    await flood.closed;
    expect(flood.rejection).toBe('misbehaved');
  });

  it('exists from version 2 of the protocol on, and version 1 is still supported', () => {
    expect(PROTOCOL_VERSIONS).toEqual([2, 1]);
  });
});
