/** HTTP details of the server: upgrade requests, encodings, spellings of paths, CORS preflights. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { promisify } from 'node:util';
import { deflateSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EXPOSED_HEADERS } from '../../../src/routes/plugins/cors.js';
import { errorOf, type Harness, MODEL, startHarness, until } from '../../support/harness.js';

let harness: Harness;
beforeAll(async () => {
  harness = await startHarness();
  await harness.provider();
});
afterAll(() => harness.close());

const BODY = JSON.stringify({ model: MODEL, messages: [{ role: 'user', content: 'hi' }] });

/** Sends raw bytes on a new connection and returns what arrives until `end` returns true. */
async function exchange(sent: string, end: (got: string) => boolean): Promise<string> {
  const client = connect(Number(new URL(harness.url).port), '127.0.0.1');
  let got = '';
  client.on('data', (chunk) => {
    got += String(chunk);
  });
  client.write(sent);
  await until(() => end(got));
  client.destroy();
  return got;
}

const statuses = (text: string): string[] => [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status ?? '');

describe('requests with an unsupported Upgrade', () => {
  const UPGRADE = 'host: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQ\r\n';

  it('are served like ordinary requests, in order, on the same connection', async () => {
    const key = `x-api-key: ${harness.apiKey}\r\n`;
    const large = JSON.stringify({ model: 'none', messages: [{ role: 'user', content: 'x'.repeat(3_000_000) }] });
    const chunked = `${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`;
    const got = await exchange(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n${key}content-length: ${BODY.length}\r\n\r\n${BODY}` +
        `GET /v1/models HTTP/1.1\r\n${UPGRADE}${key}\r\n` +
        `POST /v1/chat/completions HTTP/1.1\r\n${UPGRADE}${key}content-length: ${large.length}\r\n\r\n${large}` +
        `POST /v1/chat/completions HTTP/1.1\r\n${UPGRADE}${key}expect: 100-continue\r\ntransfer-encoding: chunked\r\n\r\n${chunked}` +
        `GET /health HTTP/1.1\r\n${UPGRADE}\r\nGET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n`,
      (text) => statuses(text).length === 7,
    );
    expect(statuses(got)).toEqual(['200', '200', '404', '100', '200', '200', '401']);
  });

  it('are served to curl, which offers HTTP/2 with every request', async () => {
    for (const body of [BODY, JSON.stringify({ model: MODEL, messages: [{ role: 'user', content: 'x'.repeat(300_000) }] })]) {
      const curl = promisify(execFile)('curl', [
        ...['--http2', '--silent', '--show-error', '--verbose', '--write-out', '\n%{http_code} %{http_version}', '--data-binary', '@-'],
        ...['--header', `authorization: Bearer ${harness.apiKey}`, '--header', 'content-type: application/json'],
        ...[
          `${harness.url}/v1/chat/completions`,
          '--next',
          '--http2',
          '--silent',
          '--verbose',
          '--write-out',
          '\n%{http_code}',
          `${harness.url}/health`,
        ],
      ]);
      curl.child.stdin?.end(body);
      const { stdout, stderr } = await curl;
      expect(stderr).toMatch(/> Upgrade: h2c/i);
      expect(stdout).toMatch(/"choices":[\s\S]*\n200 1\.1\{[\s\S]*\n200$/);
      const sent = createHash('sha256').update(body).digest('hex');
      const receipt = /< x-inference-receipt: (\S+)/i.exec(stderr)?.[1] ?? '';
      expect(JSON.parse(Buffer.from(receipt, 'base64').toString())).toMatchObject({ request_sha256: sent });
    }
  });

  it('to other paths get the error of the path, also for WebSocket', async () => {
    const websocket =
      'host: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AQIDBAUGBwgJCgsMDQ4PEA==\r\n';
    const got = await exchange(`GET /v1/chat/completions HTTP/1.1\r\n${websocket}\r\n`, (text) => text.includes('method_not_allowed'));
    expect(statuses(got)).toEqual(['405']);
  });
});

describe('compressed bodies', () => {
  const send = (body: Buffer, encoding: string): Promise<Response> =>
    fetch(`${harness.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${harness.apiKey}`, 'content-encoding': encoding },
      body: new Uint8Array(body),
    });

  it('are served, and the receipt hashes the uncompressed bytes', async () => {
    for (const [encoding, body] of [
      ['gzip', gzipSync(BODY)],
      ['X-GZIP', gzipSync(BODY)],
      ['deflate', deflateSync(BODY)],
    ] as const) {
      const answer = await send(body, encoding);
      expect(answer.status).toBe(200);
      const receipt = Buffer.from(answer.headers.get('x-inference-receipt') ?? '', 'base64').toString();
      expect(JSON.parse(receipt)).toMatchObject({ request_sha256: createHash('sha256').update(BODY).digest('hex') });
    }
  });

  it('are bounded by their inflated size, and hold no memory afterwards', async () => {
    const bomb = gzipSync(Buffer.alloc(64 * 2 ** 20));
    expect(bomb.length).toBeLessThan(100_000);
    expect((await send(bomb, 'gzip')).status).toBe(413);
    const broken = await send(gzipSync(BODY).subarray(0, 30), 'gzip');
    expect([broken.status, (await errorOf(broken)).message]).toEqual([400, 'The body is not valid gzip data.']);
    for (const encoding of ['br', 'zstd', 'gzip, gzip']) {
      const refused = await send(gzipSync(BODY), encoding);
      expect([refused.status, refused.headers.get('accept-encoding')]).toEqual([415, 'gzip, deflate']);
    }
    await until(async () => /^inference_request_bytes_held 0$/m.test(await (await harness.get('/metrics', harness.adminKey)).text()));
  });
});

it('a request without Host or with several gets a JSON error, and an unknown expectation is ignored', async () => {
  const get = (headers: string) => `GET /v1/models HTTP/1.1\r\nx-api-key: ${harness.apiKey}\r\n${headers}\r\n`;
  for (const hosts of ['', 'host: x\r\nHost: x\r\n', 'host: x\r\nhost: y\r\n']) {
    const refused = await exchange(get(hosts), (got) => got.includes('}}'));
    expect([statuses(refused), refused]).toEqual([['400'], expect.stringContaining('"param":"Host"')]);
  }
  const served = await exchange(get('host: x\r\nexpect: more\r\n'), (got) => got.includes('"data"'));
  expect(statuses(served)).toEqual(['200']);
});

it('a request with another transfer coding than chunked gets an error in the format of its path', async () => {
  const post = (path: string, codings: string) =>
    `POST ${path} HTTP/1.1\r\nhost: x\r\nx-api-key: ${harness.apiKey}\r\n${codings}\r\n${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`;
  for (const codings of ['gzip, chunked', 'gzip\r\ntransfer-encoding: chunked', 'identity,chunked']) {
    const header = `transfer-encoding: ${codings}\r\n`;
    const refused = await exchange(post('/v1/chat/completions', header), (got) => got.includes('}}'));
    expect([statuses(refused), refused]).toEqual([['501'], expect.stringContaining('"param":"Transfer-Encoding"')]);
    const ofMessages = await exchange(post('/v1/messages', header), (got) => got.includes('"request_id"'));
    expect([statuses(ofMessages), ofMessages]).toEqual([['501'], expect.stringContaining('"type":"error"')]);
  }
  // Node.js itself refuses a body whose last coding is not chunked.
  const unframed = await exchange(post('/v1/chat/completions', 'transfer-encoding: chunked, gzip\r\n'), (got) => got.includes('}}'));
  expect(statuses(unframed)).toEqual(['400']);
  const served = await exchange(post('/v1/chat/completions', 'Transfer-Encoding: Chunked\r\n'), (got) => got.includes('"choices"'));
  expect(statuses(served)).toEqual(['200']);
});

it('a request that Node.js refuses gets a JSON error with the cause', async () => {
  for (const [request, status, cause] of [
    [`GET /${'a'.repeat(20_000)} HTTP/1.1\r\nhost: x\r\n\r\n`, '431', 'too large'],
    [`GET / HTTP/1.1\r\nhost: x\r\nx-large: ${'a'.repeat(20_000)}\r\n\r\n`, '431', 'too large'],
    ['GET / HTTP/1.1\r\nhost: x\r\nx y: z\r\n\r\n', '400', 'not valid HTTP.'],
  ] as const) {
    const refused = await exchange(request, (got) => got.includes('}}'));
    expect([statuses(refused), refused]).toEqual([[status], expect.stringContaining(cause)]);
  }
});

describe('paths', () => {
  it('with extra slashes are served', async () => {
    for (const path of ['/v1/models/', '//v1/models', '/v1//models', '/v1/models/?limit=1'])
      expect((await harness.get(path)).status).toBe(200);
    expect((await harness.post('/v1/chat/completions/', BODY)).status).toBe(200);
    // All spellings of a path have the same cross-site protection.
    const foreign = { origin: 'https://other.example', 'content-type': 'text/plain' };
    for (const path of ['/console/v1/keys', '//console/v1/keys', '/console/v1/keys/'])
      expect((await fetch(harness.url + path, { method: 'POST', headers: foreign, body: '{}' })).status).toBe(403);
  });

  it('with needless escapes are the same addresses', async () => {
    const post = (path: string, headers: Record<string, string>) => fetch(harness.url + path, { method: 'POST', headers, body: '{}' });
    const unknownKey = await post('/v1/%6dessages', { authorization: 'Bearer service-x' });
    expect([unknownKey.status, await unknownKey.json()]).toEqual([401, expect.objectContaining({ type: 'error' })]);
    expect((await harness.post('/v1/chat/%63ompletions', BODY)).status).toBe(200);
    expect((await harness.get('/v1/models/test%2fno%2Dmodel')).status).toBe(404);
    // Both spellings refuse `text/plain`, which an HTML form of another site could send.
    const asText = { 'content-type': 'text/plain', origin: harness.url };
    const [plain, escaped] = await Promise.all([post('/console/v1/keys', asText), post('/%63onsole/v1/keys', asText)]);
    expect([escaped.status, escaped.status === 401]).toEqual([plain.status, false]);
  });

  it('in absolute form are the same addresses', async () => {
    const status = (path: string) =>
      new Promise<number | undefined>((resolve, reject) => {
        const headers = { 'content-type': 'text/plain', origin: harness.url };
        const sent = httpRequest(harness.url, { method: 'POST', path, headers }, (response) => {
          response.resume();
          resolve(response.statusCode);
        });
        sent.on('error', reject).end('{}');
      });
    for (const path of ['/console/v1/keys', '/v1/messages']) expect(await status(`${harness.url}${path}`)).toBe(await status(path));
    expect(await status(`${harness.url}?query`)).toBe(await status('/?query'));
  });

  it('without /v1, or with it twice, get a suggestion', async () => {
    for (const [path, meant] of [
      ['/chat/completions', '/v1/chat/completions'],
      ['/v1/v1/chat/completions', '/v1/chat/completions'],
      ['/api/v1/messages', '/v1/messages'],
      ['/models/some/model', '/v1/models/some/model'],
    ] as const) {
      const answer = await harness.post(path, {});
      expect([answer.status, (await errorOf(answer)).message]).toEqual([404, expect.stringContaining(`Did you mean ${meant}?`)]);
    }
    expect((await errorOf(await harness.post('/v1/nothing', {}))).message).not.toContain('Did you mean');
  });

  it('that are unknown hold no bodies', async () => {
    const sent = httpRequest(`${harness.url}/nothing`, { method: 'POST', headers: { 'content-length': '4000000' } });
    sent.on('error', () => {});
    const answered = new Promise<number>((resolve) => sent.on('response', (response) => resolve(response.statusCode ?? 0)));
    sent.write('x'.repeat(100_000));
    expect(await answered).toBe(404);
    sent.destroy();
  });
});

describe('browsers on other origins', () => {
  const preflight = (path: string, on = harness): Promise<Response> =>
    fetch(on.url + path, {
      method: 'OPTIONS',
      headers: {
        origin: 'https://app.example',
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization,x-stainless-os',
      },
    });

  it('may call the API with a key, and read all response headers', async () => {
    const asked = await preflight('/v1/chat/completions');
    expect([asked.status, asked.headers.get('access-control-allow-origin'), asked.headers.get('access-control-allow-headers')]).toEqual([
      204,
      '*',
      'authorization,x-stainless-os',
    ]);
    for (const stream of [false, true]) {
      const answer = await harness.chat({ stream });
      await answer.text();
      expect(answer.headers.get('access-control-allow-origin')).toBe('*');
      expect(answer.headers.get('access-control-allow-credentials')).toBe(null);
      // Headers that the Fetch standard safelists, and headers that scripts do not need.
      const others =
        /^(access-control-.*|cache-control|connection|content-length|content-type|date|keep-alive|trailer|transfer-encoding|x-accel-buffering)$/;
      const unexposed = [...answer.headers.keys()].filter(
        (name) => !others.test(name) && !(EXPOSED_HEADERS as readonly string[]).includes(name),
      );
      expect(unexposed).toEqual([]);
    }
    const refused = await harness.get('/v1/models', null);
    expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([401, '*']);
  });

  it('get no access to console and admin routes, and none at all if the operator disables CORS', async () => {
    for (const path of ['/console/v1/keys', '/admin/v1/providers', '/oauth/token', '/v1/nothing']) {
      const asked = await preflight(path);
      expect([path, asked.ok, path === '/v1/nothing' || asked.headers.get('access-control-allow-origin') === null]).toEqual([
        path,
        false,
        true,
      ]);
    }
    const closed = await startHarness({ config: { cors: false } });
    try {
      const asked = await preflight('/v1/chat/completions', closed);
      expect([asked.ok, asked.headers.get('access-control-allow-origin')]).toEqual([false, null]);
      expect((await closed.get('/v1/models')).headers.get('access-control-allow-origin')).toBe(null);
    } finally {
      await closed.close();
    }
  });
});
