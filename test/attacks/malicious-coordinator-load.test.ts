/** Floods and endless answers of a malicious coordinator, at the client library and at the proxy program. */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { e2eKeepAlive, toBase64 } from '@inference/protocol';
import { generateSealingKeyPair, keyIdOf } from '@inference/protocol/crypto';
import OpenAI from 'openai';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { until } from '../../apps/coordinator/test/support/harness.js';
import { ANSWER_LENGTH, AttackedNetwork, MODEL, PROMPT } from '../support/attacked-network.js';
import { framesOf, type MaliciousCoordinator, withAnswer, withFrames, withKeyset } from '../support/malicious-coordinator.js';
import { growthDuring } from '../support/memory.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const MIB = 1024 * 1024;
const FLOOD_MIB = 96;
/** Maximum memory growth of the process. Not smaller, because garbage collection frees buffers late. */
const MAX_GROWTH = 64 * MIB;
/** 64 kB of keep-alives. */
const KEEP_ALIVES = Buffer.concat(Array.from({ length: 16_384 }, e2eKeepAlive));

let network: AttackedNetwork;
let coordinator: MaliciousCoordinator;

beforeAll(async () => {
  network = await AttackedNetwork.start();
  ({ coordinator } = network);
});
beforeEach(() => coordinator.become(() => null));
afterAll(() => network.close());

describe.each([false, true])('the client (stream: %s)', (stream) => {
  test('opens an answer that comes byte by byte', async () => {
    coordinator.become(
      withAnswer((answer) => {
        const begin = Array.from(answer.body.subarray(0, 2000), (byte) => Uint8Array.of(byte));
        return { ...answer, body: [...begin, answer.body.subarray(2000)] };
      }),
    );
    const outcome = await network.ask(stream);
    expect(outcome).toMatchObject({ isComplete: true, verdicts: [{ state: 'verified' }] });
    expect(outcome.text).toHaveLength(ANSWER_LENGTH);
  });

  test('leaves an answer of endless keep-alives when its caller does', async () => {
    const leaving = new AbortController();
    let isLeft = false;
    function* endless(begin: Uint8Array): Generator<Uint8Array> {
      try {
        yield begin;
        for (let index = 0; ; index++) {
          if (index === 16) leaving.abort();
          yield KEEP_ALIVES;
        }
      } finally {
        isLeft = true;
      }
    }
    coordinator.become(withAnswer((answer) => ({ ...answer, body: endless(answer.body.subarray(0, 32)) })));
    const outcome = await network.ask(stream, { signal: leaving.signal });
    expect(outcome).toMatchObject({ isComplete: false, text: '' });
    await until(() => isLeft);
  });
});

describe('the proxy program', () => {
  const program = fileURLToPath(new URL('../../packages/client/bin/inference-proxy.js', import.meta.url));
  const request = { model: MODEL, max_tokens: 100, messages: [{ role: 'user' as const, content: PROMPT }] };
  let scratch: string;
  let proxy: ChildProcess;
  let client: OpenAI;
  let output = '';

  // The proxy caches a keyset for five minutes, so each attack needs a new proxy.
  beforeEach(async () => {
    scratch = temporaryDirectory('attacked-proxy');
    output = '';
    const args = [program, '--base-url', coordinator.address, '--listen', '127.0.0.1:0', '--allow-simulated'];
    const child = spawn(process.execPath, args, { env: { ...process.env, XDG_STATE_HOME: scratch } });
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes: Buffer) => (output += bytes.toString()));
    proxy = child;
    await until(() => /listening on (\S+) for/.test(output));
    const [, base] = /listening on (\S+) for/.exec(output) ?? [];
    client = new OpenAI({ baseURL: `${base}/v1`, apiKey: network.harness.apiKey, maxRetries: 0 });
  });
  afterEach(async () => {
    const exited = new Promise((resolve) => proxy.once('exit', resolve));
    proxy.kill('SIGTERM');
    await exited;
  });

  async function streamed(): Promise<{ length: number; code: string | null }> {
    let text = '';
    try {
      for await (const { choices } of await client.chat.completions.create({ ...request, stream: true })) {
        text += choices[0]?.delta.content ?? '';
      }
      return { length: text.length, code: null };
    } catch (error) {
      return { length: text.length, code: (error as { code?: string }).code ?? String(error) };
    }
  }

  function requireNoPlaintext(): void {
    network.requireNoPlaintext();
    expect(output).not.toContain('canary');
  }

  test('refuses swapped keys before anything is sealed', async () => {
    const { publicKey } = generateSealingKeyPair();
    const swapped = { x25519: toBase64(publicKey), key_id: keyIdOf(publicKey) };
    coordinator.become(withKeyset((keyset) => ({ ...keyset, providers: keyset.providers.map((entry) => ({ ...entry, ...swapped })) })));
    expect(await streamed()).toEqual({ length: 0, code: 'key_unbound' });
    expect(coordinator.sealedRequests).toEqual([]);
    requireNoPlaintext();
  });

  test('ends a truncated stream with an error', async () => {
    coordinator.become(withFrames((nonce, frames) => [nonce, ...frames.slice(0, -1)]));
    expect(await streamed()).toMatchObject({ code: 'truncated' });
    requireNoPlaintext();
  });

  test("prints the coordinator's error as one line, without control characters", async () => {
    const message = 'Busy.\n2026-01-01T00:00:00.000Z POST /v1/chat/completions VERIFIED\u001b[2K\u202e';
    coordinator.become(withAnswer(() => ({ status: 503, headers: {}, body: Buffer.from(JSON.stringify({ error: { message } })) })));
    expect(await streamed()).toEqual({ length: 0, code: 'coordinator_said' });
    await until(() => output.includes('REFUSED coordinator_said'));
    const [, line = ''] = output.trimEnd().split('\n');
    expect(output.trimEnd().split('\n')).toHaveLength(2);
    expect(line).toMatch(/^[\x20-\x7e]+$/);
  });

  test('refuses a redirect to the plain endpoint', async () => {
    const location = '/v1/chat/completions';
    coordinator.become(withAnswer(() => ({ status: 308, headers: { location }, body: new Uint8Array() })));
    expect(await streamed()).toEqual({ length: 0, code: 'downgraded' });
    expect(coordinator.received.some((received) => received.startsWith(`POST ${location}`))).toBe(false);
    requireNoPlaintext();
  });

  test('opens an answer after a flood of keep-alives, in bounded memory', async () => {
    await streamed();
    function* flooded(body: Uint8Array): Generator<Uint8Array> {
      const [nonce, [first, ...rest]] = framesOf(body);
      yield Buffer.concat([nonce, first ?? new Uint8Array()]);
      for (let sent = 0; sent < FLOOD_MIB * MIB; sent += KEEP_ALIVES.length) yield KEEP_ALIVES;
      yield Buffer.concat(rest);
    }
    coordinator.become(withAnswer((answer) => ({ ...answer, body: flooded(answer.body) })));
    const growth = await growthDuring(proxy.pid ?? 0, async () => {
      expect(await streamed()).toEqual({ length: ANSWER_LENGTH, code: null });
    });
    expect(growth).toBeLessThan(MAX_GROWTH);
  });
});
