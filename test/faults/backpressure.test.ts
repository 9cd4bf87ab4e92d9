/**
 * A client that stops reading pauses its own job, from its socket to the engine of a real agent, within a fixed buffer: no byte is
 * lost, no other job waits, and in the end it is given up.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type FaultNetwork, startFaultNetwork } from '../support/faults/network.js';
import { growthDuring } from '../support/memory.js';
import { runProgram } from '../support/program.js';
import { SlowClient } from '../support/slow-client.js';
import type { TcpProxy } from '../support/tcp-proxy.js';
import { type Ask, ask } from '../support/verified-client.js';

const CLIENT_DRAIN_MS = 12_000;
/** It decodes twenty thousand tokens. */
const SLOW_MACHINE_MS = 300_000;
const MiB = 1024 * 1024;
const TOKENS = 8000;

let faults: FaultNetwork;
let proxy: TcpProxy;
let directory: string;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'inference-backpressure-'));
  const modelPath = join(directory, 'endless.gguf');
  // Small, fast, and it never stops by itself.
  await runProgram('scripts/make-model.ts', ['--out', modelPath, '--endless', '--context', '16384']);
  const timings = { jobTimings: { clientDrainMs: CLIENT_DRAIN_MS } };
  faults = await startFaultNetwork({ agents: 1, proxied: 1, timings, modelPath, providerArgs: ['--slots', '4'] });
  proxy = faults.proxies[0] as TcpProxy;
});
afterAll(async () => {
  await faults?.dispose();
  rmSync(directory, { recursive: true, force: true });
});

/** Thousands of bytes a token, which no buffer of a kernel holds. */
function long(more: Readonly<Record<string, unknown>>): Ask {
  const wanted = { logprobs: true, top_logprobs: 20, temperature: 0, ...more };
  return { model: faults.network.model, stream: true, prompt: 'Go on.', maxTokens: TOKENS, more: wanted };
}

/** The bytes of a stream without what differs between two answers: their ids, times and signatures. */
function comparable(body: Buffer): string {
  const text = body
    .toString()
    .replaceAll(/chatcmpl-[0-9a-f]+/g, 'ID')
    .replaceAll(/"created":\d+/g, '"created":0');
  return text.slice(0, text.lastIndexOf('data: {', text.indexOf('"se_signature"')));
}

/** Resolves when nothing of the answer moves any more; to the bytes that the agent has sent. */
async function standstill(): Promise<number> {
  let before = -1;
  // The agent's pings and reports of load are a few bytes.
  while (proxy.bytes.up - before > 1000) {
    before = proxy.bytes.up;
    await new Promise((resolve) => setTimeout(resolve, 700));
  }
  return proxy.bytes.up;
}

it(
  'pauses a job whose client does not read, loses no byte of it, holds up nobody else, and in the end gives the client up',
  async () => {
    const customer = await faults.customers.customer();
    // The numbers are the same whoever else is served.
    const seeded = long({ seed: 7 });
    const start = proxy.bytes.up;
    const fast = await ask(customer, seeded);
    if (fast.kind !== 'verified') throw new Error(`the fast reader got ${JSON.stringify(fast)}`);
    const whole = proxy.bytes.up - start;
    expect(whole).toBeGreaterThan(8 * MiB);

    // One never reads on, another pauses for a while.
    const left = await faults.customers.customer();
    const stuck = await new SlowClient(left, long({})).send();
    await stuck.readBytes(1000);
    const from = await standstill();
    const client = await new SlowClient(customer, seeded).send();
    await client.readBytes(1000);
    const grown = await growthDuring(faults.coordinatorPid(), async () => {
      // What is not in the kernel's buffers, some megabytes, was never generated.
      expect((await standstill()) - from).toBeLessThan(whole - 2 * MiB);
      for (const stream of [false, true]) {
        const short = await ask(customer, { model: faults.network.model, maxTokens: 20, stream, more: { temperature: 0 } });
        expect(short.kind).toBe('verified');
      }
      expect(proxy.bytes.up - from).toBeLessThan(whole - 2 * MiB);
    });
    expect(grown).toBeLessThan(48 * MiB);
    const slow = await client.finish();
    if (slow.kind !== 'verified') throw new Error(`the slow reader got ${JSON.stringify(slow)}`);
    expect(comparable(slow.body) === comparable(fast.body)).toBe(true);
    // The second time, the same prompt was known.
    const { cached_tokens: _known, ...used } = slow.receipt.usage;
    expect(used).toEqual(fast.receipt.usage);

    // Whoever does not read does not hear of the end either; the money tells it.
    expect(await faults.customers.audit(left, [], 'others too')).toEqual([]);
    stuck.leave();
    for (const entry of await faults.customers.usage(left)) expect(entry.completion_tokens).toBeLessThan(TOKENS);
    expect((await ask(customer, { model: faults.network.model, maxTokens: 5 })).kind).toBe('verified');
  },
  SLOW_MACHINE_MS,
);
