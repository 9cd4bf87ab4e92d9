/** Admission, refusals and drains of jobs, with real sealing and a scripted engine. */
import { CLOCK_TOLERANCE_MS, type JobContext, type KeyId, type ProviderId } from '@inference/protocol';
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { admit } from '../../src/jobs/admission.js';
import { ReplaySet } from '../../src/jobs/channel/replay-set.js';
import { ConstraintCompiler } from '../../src/jobs/constraint/constraint-compiler.js';
import { JobError } from '../../src/jobs/job-error.js';
import { Bench, chat, now, providerId, sealingKey } from './session-job-bench.js';

const constraints = new ConstraintCompiler();
afterAll(() => constraints.close());

let bench: Bench;
beforeEach(() => {
  bench = new Bench(constraints);
});
afterEach(() => void vi.useRealTimers());

test.each<[string, Partial<JobContext>, string]>([
  ['of another provider', { provider_id: 'f'.repeat(32) as ProviderId }, 'bad_context'],
  ['sealed to a key that is not known', { key_id: 'f'.repeat(16) as KeyId }, 'unknown_key'],
  ['for a model that is not served', { model: 'other' }, 'model_not_loaded'],
  ['that has expired', { issued_at: now - 300_000, expires_at: now - CLOCK_TOLERANCE_MS - 1 }, 'expired'],
  ['from the future', { issued_at: now + CLOCK_TOLERANCE_MS + 1, expires_at: now + 2 * CLOCK_TOLERANCE_MS }, 'expired'],
  ['that ends before it begins', { issued_at: now, expires_at: now - 1 }, 'bad_context'],
  ['whose body is another one', { request_sha256: '0'.repeat(64) }, 'bad_context'],
  ["whose stream flag is not the body's", { stream: false }, 'bad_context'],
  ['whose limit is not the one put in', { max_tokens: 100 }, 'bad_context'],
])('a job %s is rejected', async (_what, changes, code) => {
  expect(await bench.failureOf(chat(), changes)).toEqual({ code });
  expect(bench.streams).toHaveLength(0);
  expect(bench.jobs.active).toBe(0);
});

test.each<[string, Record<string, unknown>, Partial<JobContext>]>([
  ['another model', { model: 'other' }, {}],
  ['a limit where the context has one of its own', { max_tokens: 5 }, {}],
  ['a smaller limit', { max_tokens: 5 }, { max_tokens: 6, overrides: {} }],
  ['no limit where the context claims the client set it', {}, { overrides: {} }],
])('a body that names %s is rejected', async (_what, request, changes) => {
  expect(await bench.failureOf(chat(request), changes)).toEqual({ code: 'bad_context' });
});

test('clocks may differ by the tolerance', async () => {
  const late = bench.context(chat(), { issued_at: now - 200_000, expires_at: now - CLOCK_TOLERANCE_MS });
  expect(await bench.failureOf(chat(), late)).toBeNull();
  const early = bench.context(chat(), { issued_at: now + CLOCK_TOLERANCE_MS, expires_at: now + 200_000 });
  expect(await bench.failureOf(chat(), early)).toBeNull();
  expect(bench.streams).toHaveLength(2);
});

test('jobs sealed to the old key are opened in its grace time', async () => {
  expect(await bench.failureOf(chat(), { key_id: bench.oldKey.id }, { key: bench.oldKey })).toBeNull();
  expect(bench.streams).toHaveLength(1);
});

test('a job is opened once', async () => {
  bench = new Bench(constraints, 8);
  const { context } = await bench.start(chat());
  bench.submit(chat(), context);
  await bench.settle();
  expect(bench.sent).toContainEqual({ type: 'job_failed', job_id: context.job_id, failure: { code: 'replayed' } });
  expect(bench.streams).toHaveLength(1);
});

test('ids of jobs are stored until the jobs expire, up to a bound', () => {
  const key = { ...sealingKey(), openedJobIds: new ReplaySet(2) };
  const state = {
    providerId,
    findKey: () => key,
    modelIds: new Set([bench.context(chat()).model]),
    activeJobs: 0,
    maxActiveJobs: 1,
    isDraining: false,
    absenceCode: null,
  };
  const codeOf = (context: JobContext, at: number): string => {
    try {
      admit(context, { ...state, now: at });
      return 'admitted';
    } catch (error) {
      return error instanceof JobError ? error.failure.code : String(error);
    }
  };
  const expiresAt = now + 60_000;
  const [first, second, third] = ['1', '2', '3'].map(() => bench.context(chat(), { expires_at: expiresAt })) as [
    JobContext,
    JobContext,
    JobContext,
  ];
  expect([first, second, third, first].map((context) => codeOf(context, now))).toEqual(['admitted', 'admitted', 'busy', 'replayed']);
  const lastMs = expiresAt + CLOCK_TOLERANCE_MS;
  expect([codeOf(second, lastMs), codeOf(second, lastMs + 1)]).toEqual(['replayed', 'expired']);
  const later = bench.context(chat(), { issued_at: lastMs, expires_at: lastMs + 60_000 });
  expect(codeOf(later, lastMs + 1)).toBe('admitted');
  expect(key.openedJobIds.size).toBe(1);
  expect(codeOf(first, now), 'after the clock was set back').toBe('expired');
});

test('a body sealed for another context, key or changed on the way cannot be opened', async () => {
  const body = chat();
  const context = bench.context(body);
  expect(await bench.failureOf(body, context, { sealedAs: { ...context, max_tokens: 1 } })).toEqual({ code: 'unsealing_failed' });
  expect(await bench.failureOf(body, {}, { key: bench.oldKey })).toEqual({ code: 'unsealing_failed' });
  const flip = (all: Uint8Array[]) => all.map((frame) => frame.map((byte, index) => (index === 30 ? byte ^ 1 : byte)));
  expect(await bench.failureOf(body, {}, { frames: flip })).toEqual({ code: 'unsealing_failed' });
  expect(bench.jobs.active).toBe(0);
});

test('a request rejected by the format names the field without its value', async () => {
  expect(await bench.failureOf(chat({ temperature: 77 }))).toEqual({ code: 'invalid_request', param: 'temperature' });
});

test('slots limit jobs, and draining admits none', async () => {
  bench = new Bench(constraints, 1);
  await bench.start(chat());
  expect(await bench.failureOf(chat())).toEqual({ code: 'busy' });
  const drained = bench.jobs.drain(60_000);
  expect(bench.sent).toContainEqual({ type: 'draining' });
  expect(await bench.failureOf(chat())).toEqual({ code: 'draining' });
  await bench.finish(['Hi']);
  await drained;
  expect(bench.sent.at(-1)?.type).toBe('job_completed');
});

/** Four jobs: without a body, without output, with output, and a plain job. */
async function fourJobs(bench: Bench): Promise<readonly JobContext[]> {
  const contexts = [true, true, true, false].map((stream) => bench.context(chat({ stream }), { stream }));
  for (const [index, context] of contexts.entries()) {
    bench.submit(chat({ stream: context.stream }), context, { frames: (all) => (index === 0 ? [] : all) });
    await bench.settle();
  }
  for (const { generation } of bench.streams.slice(1)) {
    generation.start({ job: generation.job, promptTokens: 11, startsInsideThinking: false });
    generation.push({ text: 'Hi', tokens: 1 });
  }
  await bench.settle();
  return contexts;
}

function failuresOf(bench: Bench): Map<string, string> {
  return new Map(bench.sent.flatMap((message) => (message.type === 'job_failed' ? [[message.job_id, message.failure.code]] : [])));
}

test('draining hands back unstarted jobs at once, and jobs without output after the grace time', async () => {
  bench = new Bench(constraints, 4);
  const [bodiless, silent, begun, plain] = (await fourJobs(bench)) as [JobContext, JobContext, JobContext, JobContext];
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const drained = bench.jobs.drain(200);
  await bench.settle();
  expect([...failuresOf(bench)]).toEqual([[bodiless.job_id, 'draining']]);
  await vi.advanceTimersByTimeAsync(200);
  await drained;
  expect(failuresOf(bench)).toEqual(
    new Map([
      [bodiless.job_id, 'draining'],
      [silent.job_id, 'draining'],
      [begun.job_id, 'cancelled'],
      [plain.job_id, 'draining'],
    ]),
  );
});

test('a forced drain does not wait', async () => {
  bench = new Bench(constraints, 4);
  await fourJobs(bench);
  const forced = new AbortController();
  const drained = bench.jobs.drain(60_000, forced.signal);
  await bench.settle();
  expect(failuresOf(bench).size).toBe(1);
  forced.abort();
  await drained;
  expect(failuresOf(bench).size).toBe(4);
});

describe('a machine that leaves', () => {
  const stays = new AbortController().signal;

  test('takes no new jobs, hands back unstarted jobs, finishes the rest, and resumes later', async () => {
    bench = new Bench(constraints, 8);
    const [bodiless] = (await fourJobs(bench)) as [JobContext];
    bench.away = 'away';
    const aside = bench.jobs.drainForAbsence({ graceMs: 60_000, forcedMs: 60_000 }, new AbortController().signal, stays);
    expect(await bench.failureOf(chat())).toEqual({ code: 'away' });
    expect(failuresOf(bench).get(bodiless.job_id)).toBe('away');
    for (const { generation } of bench.streams) {
      generation.start({ job: generation.job, promptTokens: 11, startsInsideThinking: false });
      generation.end({ job: generation.job, kind: 'finished', reason: 'stop', completionTokens: 1 });
    }
    await aside;
    expect(bench.jobs.active).toBe(0);
    expect(bench.sent.filter(({ type }) => type === 'job_completed')).toHaveLength(3);
    expect(bench.sent.some(({ type }) => type === 'draining')).toBe(false);
    bench.away = null;
    expect(await bench.failureOf(chat())).toBeNull();
  });

  test('a forced shutdown hands back jobs without output, and cancels the rest after a grace time', async () => {
    bench = new Bench(constraints, 8);
    const [bodiless, silent, begun, plain] = (await fourJobs(bench)) as [JobContext, JobContext, JobContext, JobContext];
    bench.away = 'busy';
    const forced = new AbortController();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const aside = bench.jobs.drainForAbsence({ graceMs: 60_000, forcedMs: 50 }, forced.signal, stays);
    forced.abort();
    await bench.settle();
    const handedBack = [bodiless, silent, plain].map(({ job_id }) => [job_id, 'busy']);
    expect([...failuresOf(bench)].sort()).toEqual(handedBack.sort());
    await vi.advanceTimersByTimeAsync(50);
    await aside;
    expect(failuresOf(bench).get(begun.job_id)).toBe('cancelled');
  });

  test('cancels nothing more when it stays after all', async () => {
    bench = new Bench(constraints, 8);
    await fourJobs(bench);
    bench.away = 'away';
    const stay = new AbortController();
    const aside = bench.jobs.drainForAbsence({ graceMs: 60_000, forcedMs: 60_000 }, new AbortController().signal, stay.signal);
    stay.abort();
    await aside;
    await bench.settle();
    expect(bench.jobs.active).toBe(3);
  });
});
