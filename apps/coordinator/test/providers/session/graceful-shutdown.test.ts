/** During a shutdown, running jobs may still be retried on other providers: enough of these stay connected. */
import { rmSync } from 'node:fs';
import { providersToRetain } from '@inference/scheduler';
import { afterEach, describe, expect, it } from 'vitest';
import { NOW, poolOf, provider } from '../../../../../packages/scheduler/test/providers.js';
import { errorOf, type Harness, MODEL, startHarness, until } from '../../support/harness.js';
import type { ScriptedJob, ScriptedProvider } from '../../support/scripted-provider.js';

let harness: Harness;
let closed: Promise<void> = Promise.resolve();

/** Starts a coordinator on which only a failure moves a job to another provider. */
const start = async (): Promise<void> => {
  harness = await startHarness({ config: { hedgePercent: 0 } });
};

async function waiting(): Promise<number> {
  const model = (await (await harness.get(`/v1/models/${MODEL}`)).json()) as { metadata: { waiting_requests: number } };
  return model.metadata.waiting_requests;
}

/** Begins a shutdown, as SIGTERM does. */
function shutDown(graceMs = 60_000): void {
  closed = harness.app.close(graceMs);
}

const wasDismissed = (provider: ScriptedProvider): boolean => provider.rejection === 'shutting_down';

describe('retained providers', () => {
  const wanted = { model: 'm', providerSerial: null, trustFloor: null, jobs: 1 };
  const names = (members: ReturnType<typeof providersToRetain<string>>): string[] => members.map(({ subject }) => subject);

  it('are idle and eligible, and as many as the attempts of one job or with a slot for each job', () => {
    const idle = Array.from({ length: 9 }, (_, index) => provider(`m${index}`, { slots: 4 }));
    const unfit = [provider('busy', { usedSlots: 1 }), provider('draining', { isDraining: true }), provider('stale', { trustLevel: null })];
    const members = [...poolOf([...unfit, ...idle]).members()];
    expect(names(providersToRetain(wanted, members, NOW))).toEqual(['m0', 'm1', 'm2']);
    expect(names(providersToRetain({ ...wanted, jobs: 17 }, members, NOW))).toHaveLength(5);
    expect(names(providersToRetain({ ...wanted, jobs: 1000 }, members, NOW))).toHaveLength(9);
    expect(names(providersToRetain({ ...wanted, providerSerial: 'S-m7' }, members, NOW))).toEqual(['m7']);
    expect(names(providersToRetain({ ...wanted, trustFloor: 'hardware' }, members, NOW))).toEqual([]);
  });
});

describe('a shutdown', () => {
  afterEach(async () => {
    await closed;
    rmSync(harness.dataDir, { recursive: true, force: true });
  });

  it('lets a failed job move to another provider, and closes that provider after the job', async () => {
    const running: ScriptedJob[] = [];
    await start();
    const first = await harness.provider({ onJob: (job) => void running.push(job) });
    const answer = harness.chat();
    await until(() => running.length === 1);
    const spare = await harness.provider();
    const other = await harness.provider({ models: ['test/other'] });
    shutDown();
    // Providers of other models are not needed.
    await other.closed;
    expect([wasDismissed(other), wasDismissed(spare), wasDismissed(first)]).toEqual([true, false, false]);
    running[0]?.accept();
    running[0]?.fail({ code: 'engine_failed' });
    const response = await answer;
    expect([response.status, response.headers.get('x-provider-id')]).toEqual([200, spare.providerId]);
    await closed;
    await Promise.all([spare.closed, first.closed]);
    expect([wasDismissed(spare), wasDismissed(first)]).toEqual([true, true]);
  });

  it('retains providers while a job may move, also after queueing, and none for a stream that has begun', async () => {
    const running: ScriptedJob[] = [];
    await start();
    const first = await harness.provider({ slots: 1, onJob: (job) => void running.push(job) });
    const response = harness.chat({ stream: true });
    await until(() => running.length === 1);
    const waits = harness.chat();
    await until(async () => (await waiting()) === 1);
    running[0]?.beginStream(['Hello']);
    await response;
    const spare = await harness.provider({ models: [MODEL], onJob: () => {} });
    // The queued request now has the slot.
    await until(() => spare.jobs.size === 1);
    const idle = await harness.provider();
    shutDown();
    expect(wasDismissed(first)).toBe(false);
    for (const job of spare.jobs.values()) {
      job.accept();
      job.fail({ code: 'engine_failed' });
    }
    expect((await waits).headers.get('x-provider-id')).toBe(idle.providerId);
    await Promise.all([spare.closed, idle.closed]);
    expect([wasDismissed(spare), wasDismissed(idle), wasDismissed(first)]).toEqual([true, true, false]);
    running[0]?.push(new Uint8Array(), true);
    running[0]?.complete();
    await closed;
  });

  it('refuses requests that wait for their first provider at once', async () => {
    await start();
    const running: ScriptedJob[] = [];
    await harness.provider({ slots: 1, onJob: (job) => void running.push(job) });
    const first = harness.chat();
    await until(() => running.length === 1);
    const waits = harness.chat();
    await until(async () => (await waiting()) === 1);
    shutDown();
    const refused = await waits;
    expect([refused.status, (await errorOf(refused)).code]).toEqual([503, 'shutting_down']);
    running[0]?.answerHonestly();
    expect((await first).status).toBe(200);
  });
});
