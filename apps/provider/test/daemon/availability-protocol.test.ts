/** Whole program: leaving and returning, with coordinators of both protocol versions. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { FakeCoordinator } from '../support/fake-coordinator.js';
import { ProviderProcess } from '../support/provider-process.js';

let host: string;
let coordinator: FakeCoordinator;
let provider: ProviderProcess;
beforeEach(() => {
  host = temporaryDirectory('simulated-host');
  mkdirSync(join(host, 'sys/class/power_supply/BAT0'), { recursive: true });
});
afterEach(async () => {
  await provider.dispose();
  await coordinator.close();
});

function battery(state: 'Charging' | 'Discharging'): void {
  for (const [name, text] of Object.entries({ type: 'Battery', capacity: '80', status: state })) {
    writeFileSync(join(host, 'sys/class/power_supply/BAT0', name), `${text}\n`);
  }
}

async function start(version: number) {
  coordinator = await FakeCoordinator.listen({ version });
  provider = ProviderProcess.start(coordinator.url, ['--simulated-enclave', '--context', '1024', '--simulated-host', host]);
  const session = await coordinator.session();
  return { session, register: await session.admit() };
}

const MODEL = 'pico-demo';
const question = { model: MODEL, messages: [{ role: 'user', content: 'What is the capital of France?' }], temperature: 0 };

test('a coordinator of version 1 gets no models while the machine is away', async () => {
  battery('Discharging');
  const { session, register } = await start(1);
  expect([register.models, register.availability]).toEqual([[], undefined]);
  const refused = await session.submit(question, { context: { model: MODEL } });
  expect(refused.failure).toEqual({ code: 'busy' });
  battery('Charging');
  for (;;) if ((await session.next('models')).models.length === 1) break;
  const answer = await session.submit(question, { context: { model: MODEL } });
  expect(answer.body).toContain('Paris');
  expect(session.messages.some(({ type }) => type === 'availability')).toBe(false);
});

test('a coordinator of version 2 gets the state; running jobs finish and new jobs are refused', async () => {
  battery('Discharging');
  const { session, register } = await start(2);
  expect(register).toMatchObject({ models: [{ id: MODEL, state: 'on_demand' }], availability: { state: 'away', reason: 'on_battery' } });
  expect((await session.submit(question)).failure).toEqual({ code: 'away' });
  expect(await session.next('availability')).toMatchObject({ state: 'away', reason: 'on_battery' });
  battery('Charging');
  expect(await session.next('availability')).toEqual({ type: 'availability', state: 'serving' });

  // The job stalls for want of credit.
  let begun = (): void => {};
  const first = new Promise<void>((resolve) => (begun = resolve));
  const running = session.submit({ ...question, stream: true }, { credit: 300, grant: false, onFirstBytes: begun });
  await first;
  battery('Discharging');
  expect(await session.next('availability')).toMatchObject({ state: 'leaving', reason: 'on_battery' });
  expect((await session.submit(question)).failure).toEqual({ code: 'away' });
  const [jobId] = session.openJobs();
  session.send({ type: 'credit', job_id: jobId as NonNullable<typeof jobId>, bytes: 1 << 20 });
  expect(await running).toMatchObject({ failure: null, receipt: { finish_reason: 'stop' } });
  expect(await session.next('availability')).toMatchObject({ state: 'away', reason: 'on_battery' });
  expect(session.closed).toBe(false);
  expect(await provider.logged('model_unloaded')).toMatchObject({ model: MODEL });
});
