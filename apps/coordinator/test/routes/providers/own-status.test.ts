/** `GET /v1/providers/me`: a provider reads its own status, placement decisions and next steps. */
import { type PlacementDecision, type ProviderStatusAnswer, ProviderStatusSchema } from '@inference/protocol';
import { Compile } from 'typebox/compile';
import { afterEach, describe, expect, it } from 'vitest';
import { EnclaveKey } from '../../../../../test/support/enclave-key.js';
import { nextSteps } from '../../../src/routes/providers/status/next-steps.js';
import { errorOf, type Harness, MODEL, startHarness, until } from '../../support/harness.js';
import { untilDayLasts } from '../../support/midnight.js';
import type { ScriptedJob, ScriptedProvider } from '../../support/scripted-provider.js';

let harness: Harness;
afterEach(() => harness.close());

const described = Compile(ProviderStatusSchema);
const PATH = '/v1/providers/me';
const CANARY = 'canary-of-the-prompt';
/** With this random value, the scheduler does not prefer providers without measured speed. */
const EVEN = { random: () => 0.5 };

async function tokenOf(provider: ScriptedProvider): Promise<string> {
  return (await provider.next('registered')).token ?? '';
}

async function statusOf(provider: ScriptedProvider): Promise<ProviderStatusAnswer> {
  const response = await harness.get(PATH, await tokenOf(provider));
  expect(response.status).toBe(200);
  expect(response.headers.get('cache-control')).toBe('no-store');
  const body = (await response.json()) as ProviderStatusAnswer;
  expect([...described.Errors(body)]).toEqual([]);
  return body;
}

const ask = (headers: Record<string, string> = {}) => harness.chat({ messages: [{ role: 'user', content: CANARY }] }, { headers });

const bandwidth = (gbs: number) => ({
  register: (register: Parameters<NonNullable<NonNullable<Parameters<Harness['provider']>[0]>['register']>>[0]) => ({
    ...register,
    hardware: { ...register.hardware, bandwidth_gbs: gbs },
  }),
});

describe('a session token', () => {
  it('is the only credential of the route', async () => {
    harness = await startHarness();
    const [one, two] = [await harness.provider({ serial: 'ONE' }), await harness.provider({ serial: 'TWO' })];
    const token = await tokenOf(one);
    const swapped = `${two.providerId}${token.slice(32)}`;
    for (const wrong of [null, '', 'x', harness.apiKey, swapped, token.slice(0, -1), `${token}A`, `${'0'.repeat(32)}${token.slice(32)}`]) {
      const refused = await harness.get(PATH, wrong);
      expect([wrong, refused.status, refused.headers.get('www-authenticate')]).toEqual([wrong, 401, 'Bearer']);
      expect((await errorOf(refused)).code).toBe('invalid_api_key');
    }
    expect(await statusOf(one)).toMatchObject({ serial_number: 'ONE', simulated: true });
    expect(harness.log.join('\n')).not.toContain(token.slice(33));
  });

  it('ends with its session, and a newer session of the same key has another', async () => {
    harness = await startHarness();
    const enclave = new EnclaveKey();
    const older = await harness.provider({ enclave });
    const newer = await harness.provider({ enclave });
    await until(async () => (await harness.get(PATH, await tokenOf(older))).status === 401);
    expect((await statusOf(newer)).provider_id).toBe(newer.providerId);
    newer.close();
    await until(async () => (await harness.get(PATH, await tokenOf(newer))).status === 401);
  });
});

describe('provider status', () => {
  it('shows why others were chosen, the speed difference and the own share, and nothing of other providers', async () => {
    harness = await startHarness(EVEN);
    const fast = await harness.provider({ serial: 'THEFASTONE', ...bandwidth(800) });
    const slow = await harness.provider({ serial: 'THESLOWONE', ...bandwidth(50) });
    for (let count = 0; count < 3; count++) expect((await ask()).headers.get('x-provider-serial')).toBe('THEFASTONE');
    const [chosen, passed] = [await statusOf(fast), await statusOf(slow)];
    expect(chosen).toMatchObject({ placements: 3, share: 1, models: [{ id: MODEL, placements: 3, share: 1, routable: true }] });
    expect(chosen.decisions).toMatchObject([{ model: MODEL, outcome: 'chosen', reason: 'cheapest', count: 3 }]);
    expect(passed).toMatchObject({ status: 'online', gate: null, placements: 0, share: 0, running_jobs: 0 });
    expect(passed.models).toMatchObject([{ id: MODEL, share: 0, demand: { requests_last_5_minutes: 3, waiting_requests: 0 } }]);
    const [decision] = passed.decisions;
    expect(decision).toMatchObject({ outcome: 'not_chosen', reason: 'slower', count: 3, slower_by_ms: expect.any(Number) });
    expect(decision?.text).toBe(`Not chosen: slower by ${((decision?.slower_by_ms ?? 0) / 1000).toFixed(1)} s.`);
    // The step `slower` needs a measured speed. It is absent while the provider's speed wins it requests.
    const codes = (facts: Parameters<typeof nextSteps>[0]) => nextSteps(facts).map(({ code }) => code);
    expect(codes(passed)).not.toContain('slower');
    expect(codes(passed)).toContain('not_measured');
    const measured = { ...passed, models: passed.models.map((model) => ({ ...model, measured_jobs: 5 })) };
    expect(codes(measured)).toContain('slower');
    const won = { ...chosen.decisions[0], last_at: passed.server_time } as PlacementDecision;
    expect(codes({ ...measured, decisions: [...passed.decisions, won] })).not.toContain('slower');
    expect(codes({ ...measured, decisions: [...passed.decisions, { ...won, reason: 'measuring' }] })).toContain('slower');
    const all = JSON.stringify(passed);
    for (const secret of [CANARY, 'THEFASTONE', fast.providerId, harness.developer.accountId]) expect(all).not.toContain(secret);
  });

  it('shows the unavailable reason and the remedy', async () => {
    harness = await startHarness(EVEN);
    const [hot, well] = [await harness.provider({ serial: 'HOT' }), await harness.provider({ serial: 'WELL' })];
    hot.send({ type: 'load', active_jobs: 0, thermal: 'critical' });
    await until(async () => (await statusOf(hot)).gate === 'too_hot');
    expect((await ask()).headers.get('x-provider-serial')).toBe('WELL');
    const status = await statusOf(hot);
    expect(status).toMatchObject({ status: 'online', host: { thermal: 'critical' }, models: [{ routable: false, gate: 'too_hot' }] });
    expect(status.decisions).toMatchObject([{ outcome: 'gate', reason: 'too_hot', text: 'Unavailable: it was too hot.' }]);
    expect(status.next_steps[0]?.code).toBe('too_hot');
    well.send({ type: 'draining' });
    await until(async () => (await statusOf(well)).status === 'draining');
    expect((await statusOf(well)).next_steps[0]).toMatchObject({ code: 'draining', text: expect.stringContaining('Restart it') });
  });

  it('shows lacking demand, failures and earnings', async () => {
    await untilDayLasts();
    let failing = true;
    const onJob = (job: ScriptedJob) => {
      if (failing) job.fail({ code: 'engine_failed' });
      else job.answerHonestly(['one', 'two', 'three']);
    };
    harness = await startHarness(EVEN);
    const provider = await harness.provider({ onJob });
    const codes = async () => (await statusOf(provider)).next_steps.map(({ code }) => code);
    expect(await codes()).toEqual(['not_linked', 'no_demand', 'not_enrolled', 'not_measured']);
    // Owners enrol with the agent's setup command; the console cannot do it.
    const enrol = (await statusOf(provider)).next_steps.find(({ code }) => code === 'not_enrolled');
    expect(enrol?.text).toContain('inference-provider setup --enrol');
    expect(enrol?.text).not.toContain('console');
    await ask();
    await until(async () => (await statusOf(provider)).reputation.recent_failures > 0);
    expect(await codes()).toContain('failing');
    failing = false;
    await until(async () => (await ask()).status === 200);
    await until(async () => !(await codes()).includes('failing'));
    expect(await codes()).not.toContain('no_demand');
    const { earnings } = await statusOf(provider);
    expect(earnings).toMatchObject({ of: 'machine' });
    expect(earnings?.today_micro_usd).toBeGreaterThan(0);
    expect(earnings?.total_micro_usd).toBe(earnings?.today_micro_usd);
    const { accountId } = await harness.customer(0);
    await harness.app.ledger.linkProvider(provider.providerId, accountId, Date.now());
    expect((await statusOf(provider)).earnings).toEqual({ ...earnings, of: 'account' });
    expect(await codes()).not.toContain('not_linked');
  });
});

describe('a request with a minimum trust level', () => {
  it('is never placed below that level, and the status says so', async () => {
    harness = await startHarness();
    const provider = await harness.provider();
    const refused = await ask({ 'x-inference-trust': 'hardware' });
    expect(refused.status).toBe(503);
    expect(await errorOf(refused)).toMatchObject({
      code: 'no_provider',
      param: 'X-Inference-Trust',
      message: expect.stringContaining('trust level'),
    });
    expect(
      (
        await harness.post(
          '/v1/messages',
          { model: MODEL, max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] },
          { 'x-inference-trust': 'hardware' },
        )
      ).status,
    ).toBe(529);
    const nonsense = await ask({ 'x-inference-trust': 'full' });
    expect([nonsense.status, (await errorOf(nonsense)).param]).toEqual([400, 'X-Inference-Trust']);
    expect(provider.begunCount).toBe(0);
    const served = await ask({ 'x-inference-trust': 'Self_Signed' });
    expect([served.status, served.headers.get('x-provider-trust-level')]).toEqual([200, 'self_signed']);
    const status = await statusOf(provider);
    expect(status.decisions.map(({ reason }) => reason)).toContain('below_trust_floor');
    expect(status.next_steps.map(({ code }) => code)).toContain('below_trust_floor');
  });
});

describe('GET /v1/models/{id}', () => {
  it('shows slots, demand and the expected wait', async () => {
    harness = await startHarness();
    const jobs: ScriptedJob[] = [];
    await harness.provider({
      slots: 1,
      onJob: (job) => {
        job.accept();
        jobs.push(job);
      },
    });
    const metadata = async () =>
      ((await (await harness.get(`/v1/models/${MODEL}`)).json()) as { metadata: Record<string, unknown> }).metadata;
    expect(await metadata()).toMatchObject({
      provider_count: 1,
      slots: 1,
      requests_last_5_minutes: 0,
      waiting_requests: 0,
      expected_wait_ms: 0,
    });
    const answers = [ask()];
    await until(() => jobs.length === 1);
    // The queue is empty, but no wait for the busy slot has been measured yet.
    expect(await metadata()).toMatchObject({ waiting_requests: 0, expected_wait_ms: null });
    answers.push(ask());
    await until(async () => (await metadata()).waiting_requests === 1);
    expect(await metadata()).toMatchObject({ requests_last_5_minutes: 2, expected_wait_ms: null });
    for (let index = 0; index < 2; index++) {
      await until(() => jobs.length > index);
      jobs[index]?.answerHonestly(['done']);
    }
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200]);
  });
});
