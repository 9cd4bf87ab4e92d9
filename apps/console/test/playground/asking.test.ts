import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { closeServer, listenLocally } from '../../../../test/support/local-server.js';
import { newNonce } from '../../src/pages/playground/requests/call.js';
import { type ChatOutcome, sendChatRequest } from '../../src/pages/playground/requests/chat-request.js';
import { imagePaths, imageType } from '../../src/pages/playground/requests/image-request.js';
import { sendWithKey } from '../../src/pages/playground/requests/playground-key.js';
import type { ProviderFacts } from '../../src/pages/playground/requests/provider-facts.js';
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
    base = await listenLocally(server);
  });
  afterAll(async () => {
    await closeServer(server);
  });
  beforeEach(() => {
    stop = new AbortController();
  });

  const ask = async (onText: (delta: string) => void = () => {}) => {
    const heard = { text: '', provider: null as ProviderFacts | null };
    const outcome: ChatOutcome = await sendChatRequest(
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

  it('retains every byte, and reports the content', async () => {
    const finish = `data: ${JSON.stringify({ choices: [{ delta: {}, finish_reason: 'length' }] })}\n\n`;
    const usage = `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 2 } })}\n\n`;
    const body = `: hi\n\n${chunk('Grüß')}${chunk(' Gott')}${finish}${usage}${SIGNATURE}data: [DONE]\n\n`;
    let seen: IncomingMessage | undefined;
    answer = (request, response) => {
      seen = request;
      response.writeHead(200, SSE);
      // Cuts the body inside a UTF-8 character.
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

  it('distinguishes an error event, a truncated stream, an aborted one, and an unexpected response', async () => {
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
    expect((await ask()).outcome).toMatchObject({ kind: 'failed', problem: { title: 'The response is incomplete' } });
    answer = (_, response) => {
      response.writeHead(200, SSE);
      response.write(chunk('a'));
      setImmediate(() => response.destroy());
    };
    expect((await ask()).outcome).toMatchObject({ kind: 'failed', problem: { title: 'Connection lost' } });
    answer = (_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<p>Log in to the hotel</p>');
    expect((await ask()).outcome).toMatchObject({ kind: 'failed', problem: { title: 'Unexpected response' } });
    answer = (_, response) => response.writeHead(403, { 'content-type': 'text/html' }).end('<p>no</p>');
    expect((await ask()).outcome).toMatchObject({ kind: 'failed', problem: { title: 'Unexpected response' } });
  });

  it('reads refusals with their retry-after', async () => {
    answer = (_, response) => {
      response.writeHead(429, { 'retry-after': '9', 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: { message: 'Slow down.', code: 'rate_limit_exceeded' } }));
    };
    expect((await ask()).outcome).toMatchObject({ kind: 'failed', status: 429, problem: { remedy: { kind: 'retry', after: 9 } } });
  });

  it('stops on abort, and the server notices', async () => {
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

  it('replaces a refused key once, and drops one that reached its spend limit', async () => {
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
    const fine = await sendWithKey(key, async (secret) => (secret === 'key-1' ? refuse(401) : { kind: 'complete' as const }));
    expect([fine.kind, made.length]).toEqual(['complete', 2]);
    expect((await sendWithKey(key, async () => refuse(401))).kind).toBe('failed');
    expect(made).toHaveLength(3);
    await sendWithKey(key, async () => refuse(402));
    expect(current).toBeNull();
    await sendWithKey(key, async () => refuse(503));
    expect(current).not.toBeNull();
  });
});

describe('images', () => {
  it('are fetched from this origin for every URL', () => {
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

  it('is "unknown" without a key to verify with, and never "verified"', () => {
    expect(evaluateAnswer({ ...evidence, feed: null }, 0).state).toBe('unknown');
    expect(evaluateAnswer({ ...evidence, feed: { providers: [] } }, 0).state).toBe('unknown');
    expect(evaluateAnswer({ ...evidence, feed: 'nonsense' }, 0).state).toBe('unknown');
    expect(evaluateAnswer({ ...evidence, provider: null, feed: null }, 0).state).toBe('failed');
    expect(evaluateAnswer({ ...evidence, feed: { providers: [{ provider_id: 'p1' }] } }, 0).state).toBe('failed');
  });
});
