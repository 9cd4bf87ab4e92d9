/** The coordinator is killed, and shut down once and twice: no money is lost, clients get a retry time, and providers reconnect. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createVerifiedFetch, verdictOf } from '@inference/client';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { type Customer, DEPOSIT, type SignedUsage } from '../support/customers.js';
import { type FaultNetwork, startFaultNetwork } from '../support/faults/network.js';
import { type LightAgents, startLightAgents } from '../support/light/agents.js';
import { promptOf, type Script, textOf } from '../support/light/script.js';
import { waitUntilGone } from '../support/processes.js';
import { SlowClient } from '../support/slow-client.js';
import { ask, ENDPOINTS } from '../support/verified-client.js';

const AGENTS = 40;
let faults: FaultNetwork;
let crowd: LightAgents;
let gate: Promise<void> = Promise.resolve();

beforeAll(async () => {
  faults = await startFaultNetwork({ agents: 1, env: { DRAIN_SECONDS: '60' } });
  crowd = await startLightAgents({
    url: faults.network.baseUrl,
    size: AGENTS,
    models: (index) => ['light', `light-${index % 10}`],
    staysConnected: true,
    // Sends all tokens at once, and signs when the test opens the gate.
    onJob: async (job) => {
      job.accept();
      await job.sendResponse();
      await gate;
      await job.frames.finish();
      job.complete();
    },
    onE2eJob: async (job) => {
      job.accept();
      await job.sendResponse();
      await gate;
      await job.complete();
    },
  });
});
afterAll(async () => {
  crowd?.leave();
  await faults?.dispose();
});
afterEach(async () => {
  expect(await faults.customers.ledgerProblems()).toEqual([]);
});

/** Waits for a new process with all providers registered. */
async function backAgain(pid: number, registrations: number): Promise<void> {
  expect(await waitUntilGone([pid])).toEqual([]);
  await expect.poll(() => faults.coordinatorPid()).not.toBe(pid);
  await expect.poll(registered).toBeGreaterThanOrEqual(registrations + AGENTS);
  const customer = await faults.customers.customer();
  await expect
    .poll(async () => (await ask(customer, { model: faults.network.model, maxTokens: 10 })).kind, { interval: 250 })
    .toBe('verified');
}

/** Reads to the end of a stream. */
async function ended(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  while (!(await reader.read()).done);
}

function registered(): number {
  return crowd.agents.reduce((sum, agent) => sum + agent.counts.registrations, 0);
}

const script = { words: 20 };
const runningJobs = (): number => crowd.agents.reduce((sum, agent) => sum + agent.runningJobs, 0);
const shutdownNoticeCount = (): number => crowd.agents.filter(({ rejection }) => rejection?.code === 'shutting_down').length;

/** Keeps jobs running until the returned function is called. */
function holdJobs(): () => void {
  let open: () => void = () => {};
  gate = new Promise((resolve) => {
    open = resolve;
  });
  for (const agent of crowd.agents) agent.rejection = null;
  return open;
}

/** Creates an end-to-end client. Returns a function that sends a request. */
function sealingClient({ baseUrl, apiKey }: Customer) {
  const fetch = createVerifiedFetch({ baseURL: baseUrl, policy: { allowSimulated: true } });
  const headers = { authorization: `Bearer ${apiKey}` };
  return async (stream: boolean, prompt: Script = script): Promise<Response> => {
    const body = JSON.stringify({ model: 'light', stream, messages: [{ role: 'user', content: promptOf(prompt) }] });
    return fetch(`${baseUrl}/v1/chat/completions`, { method: 'POST', headers, body });
  };
}

function receiptsIn(responses: readonly Response[]): SignedUsage[] {
  return responses.flatMap((response) => {
    const verdict = verdictOf(response);
    if (verdict?.state !== 'verified') throw new Error(`not verified: ${JSON.stringify(verdict)}`);
    const { job_id, usage } = verdict.receipt;
    return usage === undefined ? [] : [{ job_id, usage }];
  });
}

it('killed outright, it loses no money, releases what was held, and its providers come back', async () => {
  const pid = faults.coordinatorPid();
  const before = registered();
  const customer = await faults.customers.customer();
  const paid = await ask(customer, { model: 'light', prompt: { words: 5 } });
  const send = sealingClient(customer);
  const paidSealed = await send(false);
  const open = holdJobs();
  const streams = await Promise.all(
    ENDPOINTS.map(async (endpoint, index) => {
      const client = await new SlowClient(customer, { model: 'light', endpoint, stream: index % 2 === 0, prompt: script }).send();
      if (index % 2 === 0) await client.readBytes(100);
      return client;
    }),
  );
  const reader = ((await send(true)).body as ReadableStream<Uint8Array>).getReader();
  await reader.read();
  const sealed = send(false).then(
    (response) => verdictOf(response)?.state,
    () => 'connection lost',
  );
  await expect.poll(runningJobs).toBe(ENDPOINTS.length + 2);
  await expect.poll(async () => (await faults.customers.money(customer)).reserved).toBeGreaterThan(0);
  process.kill(pid, 'SIGKILL');
  await Promise.all(streams.map((client) => client.closed));
  await expect(ended(reader)).rejects.toMatchObject({ name: 'E2ERefused', code: 'truncated' });
  expect(['connection lost', 'refused']).toContain(await sealed);
  open();
  await backAgain(pid, before);
  // The client continues with the keyset of the new process.
  const after = await send(true);
  await after.text();
  const receipts = [...(paid.kind === 'verified' ? [paid.receipt] : []), ...receiptsIn([paidSealed, after])];
  expect(await faults.customers.audit(customer, receipts)).toEqual([]);
});

it('told to end (SIGTERM), it finishes what runs, refuses the rest with a time to come back, and sends its providers away', async () => {
  const pid = faults.coordinatorPid();
  const before = registered();
  const customer = await faults.customers.customer();
  const open = holdJobs();
  const running = await Promise.all(
    ENDPOINTS.map((endpoint, index) =>
      new SlowClient(customer, { model: 'light', endpoint, stream: index % 2 === 0, prompt: script }).send(),
    ),
  );
  const send = sealingClient(customer);
  const [sealedStream, sealedPlain] = [await send(true), send(false)];
  await expect.poll(runningJobs).toBe(ENDPOINTS.length + 2);
  process.kill(pid, 'SIGTERM');
  // Idle providers are drained immediately.
  await expect.poll(shutdownNoticeCount).toBeGreaterThan(AGENTS / 2);
  for (const endpoint of ENDPOINTS) {
    const refused = await ask(customer, { model: 'light', endpoint, prompt: { words: 1 } });
    expect(refused).toMatchObject({ kind: 'refused', status: endpoint === '/v1/messages' ? 529 : 503 });
    expect(refused.kind === 'refused' && refused.retryAfter).toBeGreaterThan(0);
  }
  open();
  const answers = await Promise.all(running.map((client) => client.finish()));
  const receipts = answers.map((answer) => {
    if (answer.kind !== 'verified') throw new Error(`not finished: ${JSON.stringify(answer)}`);
    expect(answer.text).toBe(textOf(script));
    return answer.receipt;
  });
  expect(await sealedStream.text()).toMatch(/\[DONE\]\n\n$/);
  const sealedReceipts = receiptsIn([sealedStream, await sealedPlain]);
  await backAgain(pid, before);
  expect(await faults.customers.audit(customer, [...receipts, ...sealedReceipts])).toEqual([]);
  const log = readFileSync(join(faults.network.logDir, 'provider-1.log'), 'utf8');
  const pauses = [...log.matchAll(/"code":"shutting_down".*?"retry_in_ms":(\d+)/g)].map((match) => Number(match[1]));
  expect(pauses.length).toBeGreaterThan(0);
  for (const pause of pauses) expect(pause).toBeGreaterThanOrEqual(1000);
});

it('told twice, it ends at once, with an error in the streams and nothing paid', async () => {
  const pid = faults.coordinatorPid();
  const before = registered();
  const customer = await faults.customers.customer();
  const open = holdJobs();
  const client = await new SlowClient(customer, { model: 'light', stream: true, prompt: script }).send();
  await client.readBytes(200);
  process.kill(pid, 'SIGTERM');
  await expect.poll(shutdownNoticeCount).toBeGreaterThan(AGENTS / 2);
  process.kill(pid, 'SIGTERM');
  expect(await client.finish()).toMatchObject({ kind: 'broken', code: 'shutting_down' });
  open();
  await backAgain(pid, before);
  expect(await faults.customers.audit(customer, [])).toEqual([]);
  expect((await faults.customers.money(customer)).balance).toBe(DEPOSIT);
});
