/**
 * Obsolete work stops in the real engines and frees its slot: attempts that lost to a faster provider, and requests whose client
 * disconnected.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type DemoNetwork, startDemoNetwork } from './support/demo-network.js';
import { descendantsOf } from './support/processes.js';
import { runProgram } from './support/program.js';
import { temporaryDirectory } from './support/temporary-directory.js';

let network: DemoNetwork;
let dispose: () => Promise<void>;

const directory = temporaryDirectory('unwanted-work');

beforeAll(async () => {
  // A model that never stops by itself, so a cancelled job is still running.
  const modelPath = join(directory, 'endless.gguf');
  await runProgram('scripts/make-model.ts', ['--out', modelPath, '--endless', '--context', '8192']);
  ({ network, dispose } = await startDemoNetwork({ providers: 2, modelPath, coordinatorEnv: { HEDGE_PERCENT: '50' } }));
});
afterAll(() => dispose?.());

/** Number of tokens whose generation takes seconds. */
const LONG = 7000;

interface ProviderState {
  readonly provider_id: string;
  readonly running_jobs: number;
  readonly placements: number;
}

/** The engine process of a provider. */
function engineOf(index: number): number {
  const agent = network.providers[index]?.current.pid as number;
  const engine = descendantsOf(agent).find(({ command }) => /engine/.test(command));
  if (engine === undefined) throw new Error(`provider ${index} has no engine`);
  return engine.pid;
}

async function providers(): Promise<ProviderState[]> {
  const response = await fetch(`${network.baseUrl}/admin/v1/providers`, { headers: { authorization: `Bearer ${network.adminKey}` } });
  return ((await response.json()) as { providers: ProviderState[] }).providers;
}

/** Waits for free slots, for less time than the coordinator takes to free the slot of an unresponsive provider. */
const allFree = (): Promise<void> =>
  expect.poll(async () => (await providers()).map(({ running_jobs }) => running_jobs), { timeout: 20_000 }).toEqual([0, 0]);

const requestStory = (maxTokens: number, signal?: AbortSignal): Promise<Response> =>
  network.post(
    '/v1/chat/completions',
    { model: network.model, messages: [{ role: 'user', content: 'Tell me a story about Mia.' }], stream: true, max_tokens: maxTokens },
    signal === undefined ? {} : { signal },
  );

it('a machine that lost to a quicker one stops, and the client has one whole answer', async () => {
  // The coordinator may prefer either machine, so each is frozen in turn until a request has an attempt on the frozen one.
  for (let isStuck = false, turn = 0; !isStuck; turn++) {
    const frozen = engineOf(turn % 2);
    process.kill(frozen, 'SIGSTOP');
    try {
      const response = await requestStory(400);
      expect(response.status).toBe(200);
      const text = await response.text();
      expect(text).toContain('se_signature');
      expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
      isStuck = (await providers()).some(({ running_jobs }) => running_jobs > 0);
    } finally {
      process.kill(frozen, 'SIGCONT');
    }
  }
  await allFree();
});

it('a stream that its client leaves stops in the engine, and what was written until then is signed', async () => {
  const finishes: string[] = [];
  // Several tries, because a slow machine may exceed the wait for the signature.
  for (let tries = 0; tries < 10 && !finishes.includes('cancelled'); tries++) {
    const leaving = new AbortController();
    const response = await requestStory(LONG, leaving.signal);
    const jobId = response.headers.get('x-inference-job-id') as string;
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    const engines = [engineOf(0), engineOf(1)];
    for (const pid of engines) process.kill(pid, 'SIGSTOP');
    leaving.abort();
    await reader.read().catch(() => null);
    // Time for the message from the coordinator to the running agent.
    await new Promise((resolve) => setTimeout(resolve, 200));
    for (const pid of engines) process.kill(pid, 'SIGCONT');
    await allFree();
    const receipt = await receiptOf(jobId);
    finishes.push(receipt?.finish_reason ?? 'unsigned');
    if (receipt?.finish_reason === 'cancelled') expect(receipt.usage.completion_tokens).toBeLessThan(LONG);
  }
  expect(finishes).toContain('cancelled');
});

interface Receipt {
  readonly finish_reason: string;
  readonly usage: { readonly completion_tokens: number };
}

/** Receipt of a job, stored for a moment after its end; null when absent. */
async function receiptOf(jobId: string): Promise<Receipt | null> {
  for (let looks = 0; looks < 20; looks++) {
    const response = await fetch(`${network.baseUrl}/v1/receipts/${jobId}`, { headers: { authorization: `Bearer ${network.apiKey}` } });
    if (response.status === 200) {
      const { receipt } = (await response.json()) as { receipt: string };
      return JSON.parse(Buffer.from(receipt, 'base64url').toString()) as Receipt;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return null;
}
