/** The local proxy over real sockets, and its program. */
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Anthropic from '@anthropic-ai/sdk';
import { MAX_E2E_VISION_BODY_BYTES } from '@inference/protocol';
import OpenAI from 'openai';
import { afterEach, describe, expect, test } from 'vitest';
import { createProxy, type LocalProxy } from '../src/proxy/server.js';
import type { LoggedVerdict } from '../src/proxy/verdict-log.js';
import { hello } from './answers.js';
import { BASE_URL, MODEL, NOW, POLICY, ScriptedNetwork, scriptedProvider, serveNetwork } from './scripted-network.js';

const ONLY = scriptedProvider();
const messages = [{ role: 'user' as const, content: 'a prompt that nobody else reads' }];
const closing: (() => Promise<unknown> | unknown)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function started(network = new ScriptedNetwork(hello, 1, [ONLY])) {
  const verdicts: LoggedVerdict[] = [];
  const onVerdict = (verdict: LoggedVerdict): void => void verdicts.push(verdict);
  const proxy: LocalProxy = createProxy({ baseURL: `${BASE_URL}/v1`, policy: POLICY, fetch: network.fetch, now: () => NOW, onVerdict });
  const { port } = await proxy.listen('127.0.0.1', 0);
  closing.push(() => proxy.close());
  return { network, verdicts, port, base: `http://127.0.0.1:${port}` };
}

describe('the proxy', () => {
  test('serves SDKs that know nothing of it, plain and streamed', async () => {
    const { base, network, verdicts } = await started();
    const openai = new OpenAI({ baseURL: `${base}/v1`, apiKey: 'sk-test' });
    expect((await openai.chat.completions.create({ model: MODEL, messages })).choices[0]?.message.content).toBe('Hello');
    let text = '';
    for await (const { choices } of await openai.chat.completions.create({ model: MODEL, messages, stream: true })) {
      text += choices[0]?.delta.content ?? '';
    }
    expect(text).toBe('Hello');
    const anthropic = new Anthropic({ baseURL: base, apiKey: 'sk-test' });
    const { content } = await anthropic.messages.stream({ model: MODEL, max_tokens: 9, messages }).finalMessage();
    expect(content).toMatchObject([{ type: 'text', text: 'Hello' }]);
    expect((await openai.models.list()).data[0]?.id).toBe(MODEL);
    expect(network.sealedRequests).toHaveLength(3);
    expect(verdicts.map(({ state, path }) => `${state} ${path}`)).toEqual([
      'verified /v1/chat/completions',
      'verified /v1/chat/completions',
      'verified /v1/messages',
      'unverified /v1/models',
    ]);
    const response = await fetch(`${base}/.inference/verdict`);
    expect(response.headers.get('access-control-allow-origin')).toBeNull();
    const { verdicts: shown } = (await response.json()) as { verdicts: LoggedVerdict[] };
    expect(shown).toHaveLength(4);
    expect(shown[1]).toMatchObject({ state: 'verified', evidence: 'certified', provider_id: ONLY.record.provider_id });
    expect(JSON.stringify(shown)).not.toContain('nobody else reads');
  });

  test('ends a refused stream with an error that SDKs throw', async () => {
    const network = new ScriptedNetwork(hello, 1, [ONLY]);
    network.frames = (frames) => frames.slice(0, -1);
    const { base, verdicts } = await started(network);
    const openai = new OpenAI({ baseURL: `${base}/v1`, apiKey: 'k', maxRetries: 0 });
    const read = async (stream: Promise<AsyncIterable<unknown>>): Promise<unknown[]> => {
      const events: unknown[] = [];
      for await (const event of await stream) events.push(event);
      return events;
    };
    await expect(read(openai.chat.completions.create({ model: MODEL, messages, stream: true }))).rejects.toMatchObject({
      code: 'truncated',
    });
    const anthropic = new Anthropic({ baseURL: base, apiKey: 'k', maxRetries: 0 });
    await expect(anthropic.messages.stream({ model: MODEL, max_tokens: 9, messages }).finalMessage()).rejects.toThrow('e2e_refused');
    // For streams of the Responses API, this SDK yields the error as an event instead of throwing.
    const events = await read(openai.responses.create({ model: MODEL, input: 'hi', stream: true }));
    expect(events.at(-1)).toMatchObject({ type: 'error', code: 'truncated' });
    expect(verdicts.map(({ code }) => code)).toEqual(['truncated', 'truncated', 'truncated']);
  });

  test('answers only programs on this machine', async () => {
    const { port, network } = await started();
    const answered = (headers: Record<string, string>): Promise<number | undefined> =>
      new Promise((resolve, reject) => {
        const sent = request({ port, host: '127.0.0.1', path: '/v1/models', headers }, (response) => {
          response.resume().once('end', () => resolve(response.statusCode));
        });
        sent.once('error', reject).end();
      });
    expect(await answered({ host: `rebound.example:${port}` })).toBe(403);
    expect(await answered({ host: '127.0.0.1' })).toBe(403);
    expect(await answered({ origin: 'https://page.example' })).toBe(403);
    expect(network.received).toEqual([]);
    expect(await answered({ host: `localhost:${port}` })).toBe(200);
  });

  test('relays nothing that is not sealed', async () => {
    const { base, network } = await started();
    for (const [method, path] of [
      ['POST', '/v1/files'],
      ['DELETE', '/v1/files/1'],
      ['OPTIONS', '/v1/chat/completions'],
    ] as const) {
      const response = await fetch(base + path, { method, ...(method === 'POST' ? { body: 'in clear' } : {}) });
      expect(response.status).toBe(403);
      expect(await response.json()).toMatchObject({ error: { code: 'not_sealable' } });
    }
    const large = await fetch(`${base}/v1/chat/completions`, { method: 'POST', body: new Uint8Array(MAX_E2E_VISION_BODY_BYTES + 1) });
    expect(large.status).toBe(413);
    expect(network.received).toEqual([]);
  });

  test('says of an invalid request that it was not sent, without its content', async () => {
    const { base, network, verdicts } = await started();
    const body = JSON.stringify({ model: MODEL, messages, 'a prompt as a member': true });
    expect((await fetch(`${base}/v1/chat/completions`, { method: 'POST', body })).status).toBe(400);
    expect(verdicts).toMatchObject([{ state: 'refused', code: 'not_sealable' }]);
    expect(verdicts[0]?.message).toContain('was not sent');
    expect(verdicts[0]?.message).not.toContain('a prompt');
    expect(network.received).toEqual([]);
  });

  test.each([
    ['GET', '/.inference/verdict?limit=1', 200],
    ['GET', '//.inference/verdict', 200],
    ['GET', '/v1/../.inference/verdict', 200],
    ['GET', '/.inference/verdict/', 404],
    ['GET', '/.inference', 404],
    ['HEAD', '/.inference/verdict', 404],
    ['POST', '/.inference/verdict', 404],
  ])('answers %s %s itself, as the coordinator could forge verdicts', async (method, path, status) => {
    const { port, network } = await started();
    const answered = new Promise<number | undefined>((resolve, reject) => {
      const sent = request({ port, host: '127.0.0.1', path, method }, (response) => {
        response.resume().once('end', () => resolve(response.statusCode));
      });
      sent.once('error', reject).end();
    });
    expect(await answered).toBe(status);
    expect(network.received).toEqual([]);
  });

  test('stops an answer whose program left', async () => {
    const network = new ScriptedNetwork(hello, 1, [ONLY]);
    let onCancelled = (): void => {};
    const cancelled = new Promise<void>((resolve) => {
      onCancelled = resolve;
    });
    const relay = network.fetch;
    const stuck = Object.assign(Object.create(network) as ScriptedNetwork, {
      fetch: async (input: string, init: RequestInit) => {
        const response = await relay(input, init);
        if (!input.endsWith('/v1/e2e/requests')) return response;
        const bytes = new Uint8Array(await response.arrayBuffer()).subarray(0, 1200);
        const start = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
          controller.enqueue(bytes);
          init.signal?.addEventListener('abort', () => {
            controller.error(init.signal?.reason);
            onCancelled();
          });
        };
        return new Response(new ReadableStream({ start }), { headers: response.headers });
      },
    });
    const { base } = await started(stuck);
    const leaving = new AbortController();
    const body = JSON.stringify({ model: MODEL, messages, stream: true });
    const response = await fetch(`${base}/v1/chat/completions`, { method: 'POST', body, signal: leaving.signal });
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    expect(new TextDecoder().decode((await reader.read()).value)).toContain('Hel');
    leaving.abort();
    await cancelled;
  });
});

const PROGRAMS = [
  { name: 'inference-proxy', file: '../bin/inference-proxy.js', command: [] },
  { name: 'inference-verify proxy', file: '../../verifier/bin/inference-verify.js', command: ['proxy'] },
];

describe.each(PROGRAMS)('$name', ({ name, file, command }) => {
  const program = fileURLToPath(new URL(file, import.meta.url));

  function run(...args: string[]) {
    const scratch = mkdtempSync(join(tmpdir(), 'inference-proxy-'));
    closing.push(() => rmSync(scratch, { recursive: true }));
    const child = spawn(process.execPath, [program, ...command, ...args], { env: { ...process.env, XDG_STATE_HOME: scratch } });
    closing.push(() => child.kill('SIGKILL'));
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes: Buffer) => (output += bytes.toString()));
    const exited = new Promise<number | null>((resolve) => child.once('close', resolve));
    return { child, exited, output: () => output, scratch };
  }

  test.each([
    [['--listen', '127.0.0.1:0'], '--base-url is an address'],
    [['--base-url', 'https://host', '--listen', '0.0.0.0:8086'], '--listen is a loopback address'],
    [['--base-url', 'https://host', '--unknown'], 'Unknown option'],
    [['--base-url', 'https://host', '--policy', '/nonexistent'], '--policy /nonexistent'],
  ])('%j is wrong usage', async (args, message) => {
    const { exited, output } = run(...args);
    expect(await exited).toBe(2);
    expect(output()).toContain(message);
    expect(output()).toContain(`usage: ${name} --base-url`);
  });

  test('explains its options', async () => {
    const { exited, output } = run('--help');
    expect(await exited).toBe(0);
    expect(output()).toContain(`usage: ${name} --base-url`);
  });

  test('prints a line per request, and ends by a signal', async () => {
    const network = new ScriptedNetwork(hello, 1, [ONLY]);
    const { base: coordinator, close } = await serveNetwork(network);
    closing.push(close);
    const scratch = mkdtempSync(join(tmpdir(), 'inference-policy-'));
    closing.push(() => rmSync(scratch, { recursive: true }));
    const policy = join(scratch, 'policy.json');
    writeFileSync(policy, JSON.stringify(POLICY));
    const { child, exited, output } = run('--base-url', coordinator, '--listen', '127.0.0.1:0', '--policy', policy);
    await expect.poll(output).toContain('listening on http://127.0.0.1:');
    const base = /listening on (\S+) for/.exec(output())?.[1] ?? '';
    const response = await fetch(`${base}/v1/chat/completions`, { method: 'POST', body: JSON.stringify({ model: MODEL, messages }) });
    // The scripted evidence is dated to a fixed time in the past, and the program uses the real clock.
    expect(response.status).toBe(403);
    await expect.poll(output).toMatch(/POST \/v1\/chat\/completions REFUSED stale: /);
    expect(output()).not.toContain('nobody else reads');
    child.kill('SIGTERM');
    expect(await exited).toBe(0);
  });
});

test('inference-verify names the package that the proxy needs', async () => {
  const scratch = mkdtempSync(join(tmpdir(), 'inference-verify-'));
  closing.push(() => rmSync(scratch, { recursive: true }));
  const verifier = fileURLToPath(new URL('../../verifier', import.meta.url));
  for (const name of ['package.json', 'bin', 'dist']) cpSync(join(verifier, name), join(scratch, name), { recursive: true });
  const { status, stderr } = spawnSync(process.execPath, [join(scratch, 'bin/inference-verify.js'), 'proxy'], { encoding: 'utf8' });
  expect(stderr).toContain('npm install @inference/client');
  expect(status).toBe(3);
});
