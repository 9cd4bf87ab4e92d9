import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { newNonce } from '../../src/pages/playground/requests/call.js';
import { askChat, type ChatOutcome } from '../../src/pages/playground/requests/chat-request.js';
import { imagePaths, imageType } from '../../src/pages/playground/requests/image-request.js';
import type { ProviderFacts } from '../../src/pages/playground/requests/provider-facts.js';
import { askWithKey } from '../../src/pages/playground/requests/send-with-key.js';
import { evaluateAnswer } from '../../src/pages/playground/verification/evaluate-answer.js';

const SSE = { 'content-type': 'text/event-stream', 'x-provider-id': 'p1', 'x-provider-chip': 'Apple M4', 'x-inference-job-id': 'j1' };
const chunk = (content: string): string => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`;
const SIGNATURE = `data: ${JSON.stringify({ choices: [], se_signature: 's', response_hash: 'h' })}\n\n`;

describe('asking a model', () => {
  let base: string;
  let answer: (request: IncomingMessage, response: ServerResponse) => void;
  let stop: AbortController;
  const server = createServer((request, response) => {
    request.resume();
    answer(request, response);
  });

  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  beforeEach(() => {
    stop = new AbortController();
  });

  const ask = async (onText: (delta: string) => void = () => {}) => {
    const heard = { text: '', provider: null as ProviderFacts | null };
    const outcome: ChatOutcome = await askChat(
      { base, secret: 'service-x', body: '{}', nonce: newNonce(), signal: stop.signal },
      {
        onProvider: (provider) => {
          heard.provider = provider;
        },
        onText: (delta) => {
          heard.text += delta;
          onText(delta);
        },
      },
    );
    return { ...heard, outcome };
  };

  it('keeps every byte, and says what came', async () => {
    const finish = `data: ${JSON.stringify({ choices: [{ delta: {}, finish_reason: 'length' }] })}\n\n`;
    const usage = `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 2 } })}\n\n`;
    const body = `: hi\n\n${chunk('Grüß')}${chunk(' Gott')}${finish}${usage}${SIGNATURE}data: [DONE]\n\n`;
    let seen: IncomingMessage | undefined;
    answer = (request, response) => {
      seen = request;
      response.writeHead(200, SSE);
      // Cut within a character.
      const bytes = Buffer.from(body);
      const cut = bytes.indexOf(0xc3) + 1;
      response.write(bytes.subarray(0, cut));
      setImmediate(() => response.end(bytes.subarray(cut)));
    };
    const { outcome, text, provider } = await ask();
    expect(text).toBe('Grüß Gott');
    expect(provider).toMatchObject({ id: 'p1', chip: 'Apple M4', jobId: 'j1' });
    expect(outcome).toMatchObject({ kind: 'complete', usage: { prompt: 3, completion: 2 }, finishReason: 'length' });
    expect(Buffer.from(outcome.kind === 'complete' ? outcome.bytes : []).toString()).toBe(body);
    expect(seen?.headers).toMatchObject({ authorization: 'Bearer service-x' });
    expect(String(seen?.headers['x-inference-nonce'])).toMatch(/^[\w-]{43}$/);
    expect(seen?.headers.cookie).toBeUndefined();
  });

  it('tells an error in the stream, a stream that was cut off and one that broke apart, and what is no answer', async () => {
    answer = (_, response) => {
      response.writeHead(200, SSE);
      response.end(`${chunk('a')}data: {"error":{"message":"The provider left."}}\n\n`);
    };
    const inStream = await ask();
    expect(inStream).toMatchObject({ text: 'a', outcome: { kind: 'failed', problem: { title: 'The response was interrupted' } } });
    answer = (_, response) => {
      response.writeHead(200, SSE);
      response.end(chunk('a'));
    };
    expect((await ask()).outcome).toMatchObject({ kind: 'failed', problem: { title: 'The answer was cut off' } });
    answer = (_, response) => {
      response.writeHead(200, SSE);
      response.write(chunk('a'));
      setImmediate(() => response.destroy());
    };
    expect((await ask()).outcome).toMatchObject({ kind: 'failed', problem: { title: 'Connection lost' } });
    answer = (_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<p>Log in to the hotel</p>');
    expect((await ask()).outcome).toMatchObject({ kind: 'failed', problem: { title: 'This is no answer' } });
    answer = (_, response) => response.writeHead(403, { 'content-type': 'text/html' }).end('<p>no</p>');
    expect((await ask()).outcome).toMatchObject({ kind: 'failed', problem: { title: 'This is no answer' } });
  });

  it('reads refusals with their pause', async () => {
    answer = (_, response) => {
      response.writeHead(429, { 'retry-after': '9', 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: { message: 'Slow down.', code: 'rate_limit_exceeded' } }));
    };
    expect((await ask()).outcome).toMatchObject({ kind: 'failed', status: 429, problem: { remedy: { kind: 'retry', after: 9 } } });
  });

  it('stops when it is told to, and the server sees it', async () => {
    const gone = new Promise<void>((resolve) => {
      answer = (_, response) => {
        response.writeHead(200, SSE);
        response.write(chunk('a'));
        response.on('close', resolve);
      };
    });
    expect((await ask(() => stop.abort())).outcome).toEqual({ kind: 'stopped' });
    await gone;
  });

  it('replaces a key that is refused, once, and forgets one that has spent its limit', async () => {
    const made: string[] = [];
    let current: string | null = null;
    const key = {
      secret: async () => {
        current ??= `key-${made.push('made')}`;
        return current;
      },
      forget: () => {
        current = null;
      },
    };
    const refuse = (status: number) => ({
      kind: 'failed' as const,
      status,
      problem: { title: '', text: '', remedy: { kind: 'change' as const } },
    });
    const fine = await askWithKey(key, async (secret) => (secret === 'key-1' ? refuse(401) : { kind: 'complete' as const }));
    expect([fine.kind, made.length]).toEqual(['complete', 2]);
    expect((await askWithKey(key, async () => refuse(401))).kind).toBe('failed');
    expect(made).toHaveLength(3);
    await askWithKey(key, async () => refuse(402));
    expect(current).toBeNull();
    await askWithKey(key, async () => refuse(503));
    expect(current).not.toBeNull();
  });
});

describe('images', () => {
  it('are fetched from this origin, whatever address they are given under', () => {
    const body = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));
    expect(imagePaths(body({ data: [{ url: 'https://gateway.example/v1/images/files/a.png' }] }))).toEqual(['/v1/images/files/a.png']);
    for (const value of [{}, { data: [] }, { data: [{}] }, null]) expect(imagePaths(body(value))).toBeNull();
    expect(imageType(Uint8Array.of(0x89, 0x50, 0x4e, 0x47))).toBe('image/png');
    expect(imageType(Uint8Array.of(0xff, 0xd8))).toBe('image/jpeg');
  });
});

describe('the judgement of an answer', () => {
  const provider: ProviderFacts = { id: 'p1', chip: '', trustLevel: '', secureEnclave: false, publicKey: 'k', jobId: 'j1' };
  const evidence = { requestBody: '{}', nonce: 'n', model: 'm', provider, answer: { kind: 'stream' as const, bytes: new Uint8Array() } };

  it('is "unknown" where there is no key to check with, and never "verified"', () => {
    expect(evaluateAnswer({ ...evidence, feed: null }, 0).state).toBe('unknown');
    expect(evaluateAnswer({ ...evidence, feed: { providers: [] } }, 0).state).toBe('unknown');
    expect(evaluateAnswer({ ...evidence, feed: 'nonsense' }, 0).state).toBe('unknown');
    expect(evaluateAnswer({ ...evidence, provider: null, feed: null }, 0).state).toBe('failed');
    expect(evaluateAnswer({ ...evidence, feed: { providers: [{ provider_id: 'p1' }] } }, 0).state).toBe('failed');
  });
});
