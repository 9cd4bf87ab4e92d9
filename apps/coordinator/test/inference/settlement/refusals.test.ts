/** Refusals that blame the client: returned only if plausible and not contradicted by another provider. */
import { type JobFailure, utf8 } from '@inference/protocol';
import { afterEach, describe, expect, it } from 'vitest';
import { addMachineToken, hashMachineToken, newMachineToken } from '../../../src/database/providers/machine-token-repository.js';
import { RefusalRates } from '../../../src/inference/settlement/refusal-rates.js';
import { contradictsOffer, RefusalTracker } from '../../../src/inference/settlement/refusal-tracker.js';
import { errorOf, type Harness, MODEL, startHarness, until } from '../../support/harness.js';
import type { ProviderOptions, ScriptedProvider } from '../../support/scripted-provider.js';

/** Context length of scripted providers, in tokens. */
const OFFERED = 4096;
const TOO_LONG = { code: 'context_length_exceeded', limit: OFFERED, actual: 5000 } as const;
/** Always picks the first provider among unproven ones. */
const FIRST_COMER = { random: () => 0 };
/** A prompt whose tokens may exceed the offered context. */
const LONG_PROMPT = { messages: [{ role: 'user', content: 'word '.repeat(2000) }] };

describe('a refusal that blames the client', () => {
  let harness: Harness;
  afterEach(() => harness.close());

  const refuser = (failure: JobFailure, options: ProviderOptions = {}): Promise<ScriptedProvider> =>
    harness.provider({ ...options, onJob: (job) => job.fail(failure) });
  const standingOf = ({ providerId }: ScriptedProvider) => harness.app.providers.reputations.summaryOf(providerId);
  const ask = async (count: number, body: Record<string, unknown> = {}): Promise<number[]> => {
    const statuses: number[] = [];
    for (let asked = 0; asked < count; asked++) statuses.push((await harness.chat(body)).status);
    return statuses;
  };
  const allFine = (count: number): number[] => Array.from({ length: count }, () => 200);

  it('with a limit below the offered context is false: the job continues elsewhere, and the provider is quarantined', async () => {
    harness = await startHarness();
    const liar = await refuser({ code: 'context_length_exceeded', limit: 1, actual: 20 });
    const first = harness.chat();
    await until(() => standingOf(liar).state === 'quarantined');
    const answer = await first;
    expect([answer.status, (await errorOf(answer)).code]).toEqual([502, 'provider_failed']);
    await harness.provider();
    expect(await ask(10)).toEqual(allFine(10));
    expect([standingOf(liar).state, standingOf(liar).detail, liar.jobs.size]).toEqual(['quarantined', 'refusal_false', 1]);
  });

  it('is not shown to a client while another provider answers', async () => {
    harness = await startHarness();
    const liars = [await refuser(TOO_LONG), await refuser({ code: 'invalid_request', param: 'messages' })];
    await harness.provider();
    expect(await ask(20, LONG_PROMPT)).toEqual(allFine(20));
    expect(await ask(5, { ...LONG_PROMPT, stream: true })).toEqual(allFine(5));
    // Each false refusal was contradicted, so the provider gets no jobs for a while.
    for (const liar of liars) {
      if (liar.jobs.size > 2) await expect.poll(() => standingOf(liar).state).not.toBe('well');
      else await expect.poll(() => standingOf(liar).recentFailures).toBe(liar.jobs.size);
    }
  });

  it('of a prompt that is too short for it is false once another provider has answered', async () => {
    harness = await startHarness(FIRST_COMER);
    const liar = await refuser(TOO_LONG);
    const alone = await harness.chat();
    expect([alone.status, (await errorOf(alone)).code]).toEqual([400, 'context_length_exceeded']);
    expect(standingOf(liar).state).toBe('well');
    await harness.provider();
    expect((await harness.chat()).status).toBe(200);
    expect(liar.jobs.size).toBe(2);
    await expect.poll(() => standingOf(liar)).toMatchObject({ state: 'quarantined', detail: 'refusal_false' });
  });

  it('of texts to embed is not false for their size: a character may be many tokens', async () => {
    harness = await startHarness(FIRST_COMER);
    const context = 8192;
    const register: ProviderOptions['register'] = (message) => ({
      ...message,
      models: message.models.map((model) => ({ ...model, model_type: 'embedding', context_length: context })),
    });
    const honest = await refuser({ code: 'context_length_exceeded', limit: context - 1, actual: 9000 }, { register });
    await harness.provider({
      register,
      onJob: (job) => {
        job.accept();
        const data = [{ object: 'embedding', index: 0, embedding: [1, 0] }];
        const usage = { prompt_tokens: 7, total_tokens: 7 };
        job.push(utf8(JSON.stringify({ object: 'list', data, model: job.context.model, usage })), true);
        job.complete();
      },
    });
    const answer = await harness.post('/v1/embeddings', { model: MODEL, input: '\ufdfa'.repeat(2000) });
    expect([answer.status, honest.jobs.size]).toEqual([200, 1]);
    await expect.poll(() => standingOf(honest)).toMatchObject({ state: 'well', recentFailures: 1 });
  });

  it('is shown when no other provider serves the model, and costs nothing', async () => {
    harness = await startHarness();
    const only = await refuser(TOO_LONG);
    const answer = await harness.chat(LONG_PROMPT);
    expect(answer.status).toBe(400);
    expect((await errorOf(answer)).message).toContain(`${OFFERED}`);
    expect(standingOf(only)).toMatchObject({ state: 'well', recentFailures: 0 });
    expect(harness.jobLines()[0]).toMatchObject({ attempts: 1, status: 'context_length_exceeded' });
  });

  it('is not false when the provider that answered has a longer context', async () => {
    harness = await startHarness(FIRST_COMER);
    const small = await refuser(TOO_LONG);
    const large = await harness.provider({
      register: (register) => ({ ...register, models: register.models.map((model) => ({ ...model, context_length: 100_000 })) }),
      onJob: (job) => {
        const usage = (tokens: number) => ({ prompt_tokens: 6000, completion_tokens: tokens, total_tokens: 6000 + tokens });
        Object.defineProperty(job, 'usage', { get: () => usage(job.tokens) });
        job.answerHonestly();
      },
    });
    expect((await harness.chat(LONG_PROMPT)).status).toBe(200);
    expect(small.jobs.size).toBe(1);
    expect(large.jobs.size).toBeGreaterThan(0);
    expect(standingOf(small)).toMatchObject({ state: 'well', recentFailures: 0 });
  });

  it('is not confirmed by another provider of the same owner', async () => {
    harness = await startHarness();
    const pair = [await refuser(TOO_LONG), await refuser(TOO_LONG)];
    const owner = await harness.customer(0);
    for (const machine of pair) {
      const token = newMachineToken();
      await addMachineToken(harness.app.database, {
        hash: hashMachineToken(token),
        accountId: owner.accountId,
        machineName: 'Mac',
        now: Date.now(),
      });
      machine.send({ type: 'link', token });
      await until(() => machine.received.some(({ type }) => type === 'linked'));
    }
    await harness.provider();
    expect(await ask(3, LONG_PROMPT)).toEqual(allFine(3));
    // At most one of the two got each request.
    expect(pair.reduce((sum, { jobs }) => sum + jobs.size, 0)).toBeLessThanOrEqual(3);
  });

  it('of an unsupported feature goes to a provider that supports it, and is no failure', async () => {
    harness = await startHarness();
    const older = await refuser({ code: 'unsupported', param: 'logprobs' });
    await harness.provider();
    expect(await ask(3)).toEqual(allFine(3));
    expect(standingOf(older)).toMatchObject({ state: 'well', recentFailures: 0 });
  });
});

it('an offer contradicts only limits below it', () => {
  const offer = { id: 'm', model_type: 'text', display_name: 'm', quantization: '8bit', context_length: OFFERED } as const;
  const of = (failure: JobFailure) => contradictsOffer(failure, offer, { endpoint: '/v1/chat/completions' });
  const code = 'context_length_exceeded';
  expect(of({ code, limit: 1, actual: 20 })).toBe(true);
  expect(of({ code, limit: OFFERED / 2, actual: 5000 })).toBe(true);
  expect(of({ code, limit: OFFERED, actual: 100 })).toBe(true);
  expect(of({ code, limit: OFFERED, actual: OFFERED })).toBe(false);
  // Embedding engines reserve a position.
  expect(of({ code, limit: OFFERED - 1, actual: OFFERED })).toBe(false);
  expect(of({ code })).toBe(false);
  expect(of({ code: 'unsupported', param: 'model' })).toBe(true);
  expect(of({ code: 'unsupported', param: 'tools' })).toBe(false);
  expect(of({ code: 'invalid_request' })).toBe(false);
});

it('frequent refusals of a feature are a failure only beside providers of the same agent version, or when nearly all jobs are refused', () => {
  let failures = 0;
  const connection = (providerId: string, agentVersion: string) =>
    ({
      models: [],
      ownerAccountId: null,
      registration: { identity: { providerId }, agentName: 'agent', agentVersion },
      isProven: () => true,
      report: () => failures++,
    }) as never;
  const newer = connection('newer', '2');
  const failuresOf = (refuser: never, answered: number): number => {
    failures = 0;
    const refusals = new RefusalTracker({ registry: { placement: { providersOfOwner: () => [] } }, now: () => 0 });
    const job = { accountId: 'account', endpoint: '/v1/chat/completions', body: new Uint8Array(100) };
    const ended = (by: never, refuses: boolean): void => {
      const run = { job, slotRequest: { model: 'm', providerSerial: null, exclude: new Set() }, refusals: [] } as never;
      if (refuses) refusals.refused(run, refuser, { code: 'unsupported', param: 'tools' });
      refusals.runEnded(run, { kind: 'delivered', billed: { receipt: { usage: {} } }, provider: by } as never);
    };
    for (let count = 0; count < 40; count++) ended(newer, false);
    for (let count = 0; count < answered; count++) ended(refuser, false);
    for (let count = 0; count < 6; count++) ended(newer, true);
    return failures;
  };
  expect(failuresOf(connection('older', '1'), 6)).toBe(0);
  expect(failuresOf(connection('same', '2'), 6)).toBeGreaterThan(0);
  expect(failuresOf(connection('older', '1'), 0)).toBeGreaterThan(0);
});

it('refusals count as frequent relative to other providers, and decay', () => {
  let now = 0;
  const rates = new RefusalRates(() => now);
  const [own, other] = ['a', 'b'] as never[] as [never, never];
  for (let job = 0; job < 5; job++) rates.refused('m', own);
  for (let job = 0; job < 40; job++) rates.answered('m', other);
  expect([rates.isFrequent('m', own), rates.isFrequent('m', other), rates.isFrequent('other', own)]).toEqual([true, false, false]);
  // Both providers refuse equally often, so the requests are the cause.
  for (let job = 0; job < 40; job++) rates.refused('m', other);
  for (let job = 0; job < 5; job++) rates.answered('m', own);
  expect(rates.isFrequent('m', own)).toBe(false);
  now += 60 * 60_000;
  for (let job = 0; job < 3; job++) rates.refused('m', own);
  expect(rates.isFrequent('m', own)).toBe(false);
});
