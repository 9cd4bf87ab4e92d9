import { afterEach, describe, expect, it } from 'vitest';
import type { RateLimitConfig } from '../src/config.js';
import { Browser } from './console-client.js';
import { errorOf, type Harness, NO_RATE_LIMITS, startHarness } from './harness.js';
import { BODIES } from './inference-calls.js';

describe('rate limits', () => {
  let harness: Harness;
  afterEach(() => harness.close());

  async function start(limits: Partial<RateLimitConfig>, trustedProxies: string[] = []): Promise<void> {
    harness = await startHarness({ config: { rateLimits: { ...NO_RATE_LIMITS, ...limits }, trustedProxies } });
  }

  const from = (address: string, path: string, key?: string): Promise<Response> =>
    fetch(harness.url + path, { headers: { 'x-forwarded-for': address, ...(key === undefined ? {} : { 'x-api-key': key }) } });

  it('hold a key to its number of requests, and tell it in the headers of both formats', async () => {
    await start({ keyPerMinute: 4 });
    await harness.provider();
    const chat = await harness.chat();
    expect(chat.status).toBe(200);
    expect(chat.headers.get('x-ratelimit-limit-requests')).toBe('4');
    expect(chat.headers.get('x-ratelimit-remaining-requests')).toBe('3');
    expect(chat.headers.get('x-ratelimit-reset-requests')).toMatch(/^\d+s$/);
    const stream = await harness.chat({ stream: true });
    expect(stream.headers.get('x-ratelimit-remaining-requests')).toBe('2');
    await stream.text();
    const messages = await harness.post('/v1/messages', BODIES['/v1/messages']);
    expect(messages.headers.get('anthropic-ratelimit-requests-remaining')).toBe('1');
    expect(Date.parse(messages.headers.get('anthropic-ratelimit-requests-reset') ?? '')).toBeGreaterThan(Date.now() - 1000);
    expect((await harness.get('/v1/models')).status).toBe(200);

    const refused = await harness.chat();
    expect([refused.status, await errorOf(refused)]).toMatchObject([429, { type: 'rate_limit_error', code: 'rate_limit_exceeded' }]);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(refused.headers.get('x-ratelimit-remaining-requests')).toBe('0');
    const anthropic = await harness.post('/v1/messages', BODIES['/v1/messages']);
    expect([anthropic.status, await anthropic.json()]).toMatchObject([429, { type: 'error', error: { type: 'rate_limit_error' } }]);
    expect(anthropic.headers.get('anthropic-ratelimit-requests-remaining')).toBe('0');

    const person = new Browser(harness.url);
    await person.signUp('ada@example.com');
    const { secret } = await person.newKey();
    expect((await harness.get('/v1/models', secret)).status).toBe(200);
  });

  it('hold an address to its number of wrong keys, and leave good ones alone', async () => {
    await start({ badKeysPerMinute: 3 });
    expect((await harness.get('/v1/models')).status).toBe(200);
    const wrong = (): Promise<Response> => harness.get('/v1/models', `service-${'x'.repeat(43)}`);
    const answers: number[] = [];
    for (let count = 0; count < 5; count++) answers.push((await wrong()).status);
    expect(answers).toEqual([401, 401, 401, 429, 429]);
    expect(Number((await wrong()).headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect((await harness.get('/v1/models')).status).toBe(200);
    expect((await harness.get('/v1/models', null)).status).toBe(401);
  });

  it('hold an address at what takes no key, and believe no header about it', async () => {
    await start({ addressPerMinute: 3 });
    const answers: number[] = [];
    for (let count = 0; count < 5; count++) answers.push((await from(`10.0.0.${count}`, '/v1/providers/attestation')).status);
    expect(answers).toEqual([200, 200, 200, 429, 429]);
    expect((await harness.get('/health')).status).toBe(200);
    expect((await harness.get('/v1/models')).status).toBe(200);
    expect((await harness.get('/console/v1/settings')).status).toBe(429);
  });

  it('believe the header of a proxy that the operator named', async () => {
    await start({ addressPerMinute: 1 }, ['127.0.0.0/8', '::1']);
    expect((await from('10.0.0.1', '/openapi.json')).status).toBe(200);
    expect((await from('10.0.0.1', '/openapi.json')).status).toBe(429);
    expect((await from('10.0.0.2', '/openapi.json')).status).toBe(200);
    // What the client itself wrote stands before what the proxy added.
    expect((await from('1.2.3.4, 10.0.0.2', '/openapi.json')).status).toBe(429);
    // One household has a whole IPv6 network of its own.
    expect((await from('2001:db8::1', '/openapi.json')).status).toBe(200);
    expect((await from('2001:db8::2', '/openapi.json')).status).toBe(429);
  });

  it('hold the tries with one e-mail address, whatever is tried and from wherever', async () => {
    await start({ emailPerQuarter: 4 }, ['127.0.0.0/8', '::1']);
    const person = new Browser(harness.url);
    await person.signUp('ada@example.com');
    const statuses: number[] = [];
    for (const email of ['ada@example.com', 'ADA@example.com', ' ada@example.com', 'ada@example.com', 'ada@example.com']) {
      const body = { email, password: 'guess number one' };
      const address = { 'x-forwarded-for': `10.1.${statuses.length}.1` };
      statuses.push((await new Browser(harness.url).send('POST', '/console/auth/sign-in/email', body, address)).status);
    }
    expect(statuses).toEqual([401, 401, 400, 429, 429]);
    const blocked = await new Browser(harness.url).signIn('ada@example.com');
    expect(blocked.status).toBe(429);
    expect(Number(blocked.headers.get('retry-after'))).toBeGreaterThan(60);
    const nobody = await Promise.all(Array.from({ length: 6 }, () => new Browser(harness.url).signIn('nobody@example.com')));
    expect(nobody.map((answer) => answer.status).sort()).toEqual([401, 401, 401, 401, 429, 429]);
    expect((await person.get('/console/v1/me')).status).toBe(200);
  });

  it('hold an address at signing in', async () => {
    await start({ authPerMinute: 2 });
    const statuses: number[] = [];
    for (let count = 0; count < 4; count++) statuses.push((await new Browser(harness.url).signIn(`person-${count}@example.com`)).status);
    expect(statuses).toEqual([401, 401, 429, 429]);
  });
});
