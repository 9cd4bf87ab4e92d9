/** `models use` beside a running daemon: models change on the same connection, and the coordinator gets the new list. */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { writeAccount } from '../../src/account/account-file.js';
import { notifySignIn } from '../../src/control/control-client.js';
import { FileHashes } from '../../src/models/file-hash.js';
import { ModelStore } from '../../src/models/store/model-store.js';
import { demoModel } from '../demo-model.js';
import { FakeCoordinator, type FakeProviderSession } from '../support/fake-coordinator.js';
import { ProviderProcess } from '../support/provider-process.js';

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
/** Reached only by a test that hangs, however busy the machine is. */
const STUCK_MS = 10 * 60_000;
const dir = temporaryDirectory('live');
const models = (...args: string[]) => promisify(execFile)(process.execPath, [MAIN, 'models', ...args, '--data-dir', dir]);

let coordinator: FakeCoordinator;
let provider: ProviderProcess;
let session: FakeProviderSession;
const start = () => ProviderProcess.start(coordinator.url, ['--simulated-enclave', '--slots', '2', '--context', '1024'], dir);

beforeAll(async () => {
  const store = new ModelStore(join(dir, 'models'));
  const file = demoModel();
  const sha256 = await new FileHashes(join(dir, 'model-hashes.json')).hashModel([file]);
  const entry = { file, files: [file], sha256, bytes: 1, source: file, pulled_at: 0 };
  store.put({ ...entry, id: 'first', use: 'always' });
  store.put({ ...entry, id: 'second', use: null });
  coordinator = await FakeCoordinator.listen({ version: 2 });
  provider = start();
  session = await provider.whileItRuns(coordinator.session());
  await session.admit();
  await provider.logged('registered', STUCK_MS);
});

afterAll(async () => {
  await provider.dispose();
  await coordinator.close();
});

/** Waits until the coordinator's list has exactly these models, all loaded. */
async function offered(...ids: string[]): Promise<void> {
  for (;;) {
    const { models: offers } = await session.next('models', STUCK_MS);
    if (offers.map(({ id }) => id).join() === ids.join() && offers.every(({ state }) => state === 'ready')) return;
  }
}

const capital = { messages: [{ role: 'user', content: 'What is the capital of France?' }], temperature: 0, max_tokens: 50 };
const ask = (model: string) => session.submit({ ...capital, model }, { context: { model } });

test("a selected model is added during another's job, and a deselected one is removed after its job", async () => {
  expect(session.register?.models.map(({ id }) => id)).toEqual(['first']);
  expect((await models('use', 'second')).stdout).toBe('second is served from now on (always).\n');
  await offered('first', 'second');
  expect(JSON.parse((await ask('second')).body).choices[0].message.content).toContain('Paris');

  let begun: () => void = () => {};
  const hasBegun = new Promise<void>((resolve) => (begun = resolve));
  const long = { ...capital, messages: [{ role: 'user', content: 'Count from 1 to 9.' }], max_tokens: 300, model: 'first', stream: true };
  // The job gets no credit before `first` is reported as removed, and so cannot finish earlier.
  const running = session.submit(long, { context: { model: 'first' }, onFirstBytes: () => begun(), credit: 1, grant: false });
  await hasBegun;
  expect((await models('use', 'first', '--off')).stdout).toBe('first is no longer served from now on.\n');
  await offered('second');
  expect((await ask('first')).failure?.code).toBe('model_not_loaded');
  const [jobId] = session.openJobs();
  session.send({ type: 'credit', job_id: jobId, bytes: 1 << 20 } as { type: string });
  const { failure, receipt } = await running;
  expect([failure, receipt?.model]).toEqual([null, 'first']);
  expect(session.closed).toBe(false);
});

test('the owner selects and deselects models from the console, unless this machine forbids it', async () => {
  const send = async (model: string, served: boolean) => {
    const command_id = randomUUID();
    const action = { kind: 'set_model', model, served };
    session.send({ type: 'owner_command', command_id, expires_at: Date.now() + STUCK_MS, action });
    const { refusal, settings } = await session.next('owner_command_result', STUCK_MS);
    return [refusal, settings.models.flatMap((each) => (each.served ? [each.id] : [])).join()];
  };
  expect(await send('first', true)).toEqual(['not_linked', 'second']);
  writeAccount(dir, { coordinator: coordinator.url, token: 'a'.repeat(32), signed_in_at: 0 });
  const linked = notifySignIn(dir, STUCK_MS);
  await session.next('link', STUCK_MS);
  session.send({ type: 'linked', account_id: 'a', account_name: 'Ada' });
  expect((await linked).state).toBe('linked');

  expect(await send('first', true)).toEqual([null, 'second,first']);
  await offered('second', 'first');
  expect(await send('first', false)).toEqual([null, 'second']);
  expect(await send('second', false)).toEqual(['last_model', 'second']);
  expect(await send('unknown', true)).toEqual(['model_unknown', 'second']);
  const remoteControl = (word: string) => promisify(execFile)(process.execPath, [MAIN, 'remote-control', word, '--data-dir', dir]);
  expect((await remoteControl('off')).stdout).toBe('Control from the console is off.\n');
  expect(await send('first', true)).toEqual(['remote_control_off', 'second']);
  const lastCommand = () => provider.log().findLast(({ event }) => event === 'owner_command');
  await expect.poll(lastCommand).toMatchObject({ refusal: 'remote_control_off' });
  expect(provider.stdout).not.toContain('Ada');
});

test('a removed model is no longer served', async () => {
  await models('use', 'first', '--keep', 'on_demand');
  expect((await models('rm', 'second', '--yes')).stdout).toBe('Removed second.\n');
  for (;;) {
    const { models: offers } = await session.next('models', STUCK_MS);
    if (offers.map(({ id }) => id).join() === 'first') break;
  }
  expect(JSON.parse((await ask('first')).body).choices[0].message.content).toContain('Paris');
  expect(session.closed).toBe(false);
});

test('a pause from the console survives a restart of the agent, and can be ended from there', async () => {
  const remoteControl = promisify(execFile)(process.execPath, [MAIN, 'remote-control', 'on', '--data-dir', dir]);
  expect((await remoteControl).stdout).toBe('Control from the console is on.\n');
  const send = async (action: object) => {
    session.send({ type: 'owner_command', command_id: randomUUID(), expires_at: Date.now() + STUCK_MS, action } as { type: string });
    const { refusal, settings } = await session.next('owner_command_result', STUCK_MS);
    return [refusal, settings.pause];
  };
  const until = Date.now() + 86_400_000;
  expect(await send({ kind: 'pause', until })).toEqual([null, { by: 'console', until }]);
  provider.child.kill('SIGTERM');
  expect(await provider.exit).toEqual({ code: 0, signal: null });

  provider = start();
  session = await provider.whileItRuns(coordinator.session());
  expect((await session.admit()).availability).toMatchObject({ state: 'away', reason: 'paused' });
  await session.next('link', STUCK_MS);
  session.send({ type: 'linked', account_id: 'a', account_name: 'Ada' });
  expect((await ask('first')).failure?.code).toBe('away');
  expect(await send({ kind: 'set_schedule', schedule: '' })).toEqual([null, { by: 'console', until }]);
  expect(await send({ kind: 'resume' })).toEqual([null, null]);
  for (;;) if ((await session.next('availability', STUCK_MS)).state === 'serving') break;
  expect(JSON.parse((await ask('first')).body).choices[0].message.content).toContain('Paris');
});
