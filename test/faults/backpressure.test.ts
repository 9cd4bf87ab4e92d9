/**
 * A client that stops reading pauses its own job, from its socket to the engine of a real agent, within a fixed buffer: no byte is
 * lost, no other job waits, and a disconnected client pays for its output. (`clients.test.ts` covers clients that never read.)
 */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type FaultNetwork, startFaultNetwork } from '../support/faults/network.js';
import { growthDuring } from '../support/memory.js';
import { runProgram } from '../support/program.js';
import { SlowClient } from '../support/slow-client.js';
import type { TcpProxy } from '../support/tcp-proxy.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { type Ask, ask } from '../support/verified-client.js';

/** Long enough that no client times out, however slow the machine. */
const CLIENT_DRAIN_MS = 600_000;
const SLOW_MACHINE_MS = 300_000;
const MiB = 1024 * 1024;
const TOKENS = 1800;
/** Length of a token, in letters. Long tokens give many bytes in little time. */
const TOKEN_LETTERS = 128;
const ALPHABET = 'bcdefghijklmnopqrstuvwxyz';

let faults: FaultNetwork;
let proxy: TcpProxy;
let directory: string;

beforeAll(async () => {
  directory = temporaryDirectory('inference-backpressure');
  const modelPath = join(directory, 'endless.gguf');
  // A small, fast model that never ends a response, with mostly long tokens.
  const words = join(directory, 'words.txt');
  writeFileSync(words, longWords().join('\n'));
  await runProgram('scripts/make-model.ts', ['--out', modelPath, '--endless', '--text', words, '--vocabulary', '1024']);
  const timings = { jobTimings: { clientDrainMs: CLIENT_DRAIN_MS } };
  faults = await startFaultNetwork({ agents: 1, proxied: 1, timings, modelPath, providerArgs: ['--slots', '4'] });
  proxy = faults.proxies[0] as TcpProxy;
});
afterAll(() => faults?.dispose());

/** Words with a long common prefix and different ends, each twice, because training ignores words that occur once. */
function longWords(): string[] {
  const beginning = 'a'.repeat(TOKEN_LETTERS);
  const ends = [...ALPHABET].flatMap((one) => [...ALPHABET].map((other) => one + other));
  return [...ends, ...ends].map((end) => beginning + end);
}

/** A request whose response exceeds all kernel buffers: more than ten thousand bytes per token, with log probabilities. */
function long(more: Readonly<Record<string, unknown>>): Ask {
  const wanted = { logprobs: true, top_logprobs: 20, temperature: 0, ...more };
  return { model: faults.network.model, stream: true, prompt: 'Go on.', maxTokens: TOKENS, more: wanted };
}

/** Events of a stream up to its signature, without ids and times. */
function comparable(body: Buffer): string[] {
  const events = body
    .toString()
    .replaceAll(/chatcmpl-[0-9a-f]+/g, 'ID')
    .replaceAll(/"created":\d+/g, '"created":0')
    .split('\n\n')
    // Comments keep a connection alive, at varying times.
    .filter((event) => !event.startsWith(':'));
  return events.slice(
    0,
    events.findIndex((event) => event.includes('"se_signature"')),
  );
}

/** First differing event with its number, from both responses. Null: no difference. */
function firstDifference(one: Buffer, other: Buffer): Readonly<Record<string, unknown>> | null {
  const [left, right] = [comparable(one), comparable(other)];
  const at = Array.from({ length: Math.max(left.length, right.length) }).findIndex((_, index) => left[index] !== right[index]);
  return at === -1 ? null : { event: at, of: [left.length, right.length], one: left[at], other: right[at] };
}

/** Consecutive samples without progress that prove a stall. Several, because a busy machine may not run the agent between two samples. */
const QUIET_LOOKS = 4;

/** Resolves when the response stalls, with the byte count that the agent has sent. */
async function standstill(): Promise<number> {
  let before = proxy.bytes.up;
  for (let quiet = 0; quiet < QUIET_LOOKS; ) {
    await new Promise((resolve) => setTimeout(resolve, 700));
    // Pings and load reports of the agent are smaller.
    quiet = proxy.bytes.up - before > 1000 ? 0 : quiet + 1;
    before = proxy.bytes.up;
  }
  return proxy.bytes.up;
}

it(
  'pauses a job whose client does not read, loses no byte of it, and holds up nobody else',
  async () => {
    const customer = await faults.customers.customer();
    // Output is identical regardless of other load.
    const seeded = long({ seed: 7 });
    const start = proxy.bytes.up;
    const fast = await ask(customer, seeded);
    if (fast.kind !== 'verified') throw new Error(`the fast reader got ${JSON.stringify(fast)}`);
    const whole = proxy.bytes.up - start;
    expect(whole).toBeGreaterThan(12 * MiB);

    // One client never resumes reading, another pauses.
    const left = await faults.customers.customer();
    const stuck = await new SlowClient(left, long({})).send();
    await stuck.readBytes(1000);
    const from = await standstill();
    const client = await new SlowClient(customer, seeded).send();
    await client.readBytes(1000);
    const grown = await growthDuring(faults.coordinatorPid(), async () => {
      // Beyond the kernel's buffers of some megabytes, nothing was generated.
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
    expect(firstDifference(slow.body, fast.body)).toBeNull();
    // Cached tokens differ, because the second request reuses the cached prompt.
    const { cached_tokens: _known, ...used } = slow.receipt.usage;
    expect(used).toEqual(fast.receipt.usage);

    stuck.leave();
    expect(await faults.customers.audit(left, [], Number.POSITIVE_INFINITY)).toEqual([]);
    for (const entry of await faults.customers.usage(left)) expect(entry.completion_tokens).toBeLessThan(TOKENS);
    expect((await ask(customer, { model: faults.network.model, maxTokens: 5 })).kind).toBe('verified');
  },
  SLOW_MACHINE_MS,
);
