import { afterEach, describe, expect, it } from 'vitest';
import type { RateLimitConfig } from '../../../src/config/config.js';
import { Browser, PASSWORD } from '../../support/console-client.js';
import { errorOf, type Harness, NO_RATE_LIMITS, startHarness } from '../../support/harness.js';
import { BODIES } from '../../support/inference-calls.js';

describe('rate limits', () => {
  let harness: Harness;
  afterEach(() => harness.close());

  async function start(limits: Partial<RateLimitConfig>, trustedProxies: string[] = []): Promise<void> {
    harness = await startHarness({ config: { rateLimits: { ...NO_RATE_LIMITS, ...limits }, trustedProxies } });
  }

  const from = (address: string, path: string, key?: string): Promise<Response> =>
    fetch(harness.url + path, { headers: { 'x-forwarded-for': address, ...(key === undefined ? {} : { 'x-api-key': key }) } });

  it('bound the requests of a key, with the headers of both formats', async () => {
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

  it('bound the wrong keys of an address without blocking valid ones', async () => {
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

  it('admit a valid key that an address first shows after many wrong keys', async () => {
    await start({ badKeysPerMinute: 3 });
    const person = new Browser(harness.url);
    await person.signUp('ada@example.com');
    const { secret, id } = await person.newKey();
    const wrong = (): Promise<Response> => harness.get('/v1/models', `service-${'x'.repeat(43)}`);
    for (let count = 0; count < 5; count++) await wrong();
    expect((await wrong()).status).toBe(429);
    expect((await harness.get('/v1/models', secret)).status).toBe(200);
    // The key leaves the cache, but its hash is remembered as valid. So a flood of wrong keys cannot block it.
    harness.app.apiKeyCache.changed(id);
    const flood = Array.from({ length: 50 }, async () => (await wrong()).status);
    const good = Array.from({ length: 10 }, async () => (await harness.get('/v1/models', secret)).status);
    expect(new Set(await Promise.all(good))).toEqual(new Set([200]));
    expect(new Set(await Promise.all(flood))).toEqual(new Set([429]));
  });

  it('bound an address on routes without a key, and ignore forwarding headers', async () => {
    await start({ addressPerMinute: 3 });
    const answers: number[] = [];
    for (let count = 0; count < 5; count++) answers.push((await from(`10.0.0.${count}`, '/v1/providers/attestation')).status);
    expect(answers).toEqual([200, 200, 200, 429, 429]);
    expect((await harness.get('/health')).status).toBe(200);
    expect((await harness.get('/v1/models')).status).toBe(200);
    expect((await harness.get('/console/v1/settings')).status).toBe(429);
  });

  it('trust the forwarding header of a configured proxy', async () => {
    await start({ addressPerMinute: 1 }, ['127.0.0.0/8', '::1']);
    expect((await from('10.0.0.1', '/openapi.json')).status).toBe(200);
    expect((await from('10.0.0.1', '/openapi.json')).status).toBe(429);
    expect((await from('10.0.0.2', '/openapi.json')).status).toBe(200);
    // Clients can only forge entries before the proxy's own, so the last entry is used.
    expect((await from('1.2.3.4, 10.0.0.2', '/openapi.json')).status).toBe(429);
    // One customer of an Internet provider controls a whole IPv6 prefix, so both addresses share a limit.
    expect((await from('2001:db8::1', '/openapi.json')).status).toBe(200);
    expect((await from('2001:db8::2', '/openapi.json')).status).toBe(429);
  });

  describe('of attempts with one e-mail address', () => {
    const EMAIL = 'ada@example.com';
    const signIn = (browser: Browser, address: string, password = PASSWORD, email = EMAIL): Promise<Response> =>
      browser.send('POST', '/console/auth/sign-in/email', { email, password }, { 'x-forwarded-for': address });
    const statusesOf = async (count: number, one: (index: number) => Promise<Response>): Promise<number[]> => {
      const statuses: number[] = [];
      for (let index = 0; index < count; index++) statuses.push((await one(index)).status);
      return statuses;
    };

    it('lock out the stranger, and not the owner', async () => {
      await start({ emailPerQuarterHour: 4 }, ['127.0.0.0/8', '::1']);
      const owner = new Browser(harness.url);
      await owner.signUp(EMAIL);
      const stranger = new Browser(harness.url);
      expect(await statusesOf(6, () => signIn(stranger, '10.6.6.6', 'guess number one'))).toEqual([401, 401, 401, 401, 429, 429]);
      const blocked = await signIn(stranger, '10.6.6.6', PASSWORD, ' ADA@example.com');
      expect(blocked.status).toBe(429);
      expect(Number(blocked.headers.get('retry-after'))).toBeGreaterThan(60);
      expect((await signIn(stranger, '10.6.6.6', 'guess number one', 'ben@example.com')).status).toBe(401);
      expect((await signIn(new Browser(harness.url), '10.1.1.1')).status).toBe(200);
      // The owner's browser is known, so it is not blocked at the stranger's address.
      expect((await signIn(owner, '10.6.6.6')).status).toBe(200);
      await owner.send('POST', '/console/auth/request-password-reset', { email: EMAIL }, { 'x-forwarded-for': '10.1.1.1' });
      await harness.until(() => harness.log.some((line) => line.includes('reset_password')));
    });

    it('do not count successful sign-ins', async () => {
      await start({ emailPerQuarterHour: 3 });
      const owner = new Browser(harness.url);
      await owner.signUp(EMAIL);
      expect(await statusesOf(8, () => new Browser(harness.url).signIn(EMAIL))).toEqual(Array(8).fill(200));
      const nobody = await Promise.all(Array.from({ length: 5 }, () => new Browser(harness.url).signIn('nobody@example.com')));
      expect(nobody.map((answer) => answer.status).sort()).toEqual([401, 401, 401, 429, 429]);
    });

    it('bound an address that tries many e-mail addresses', async () => {
      await start({ emailPerQuarterHour: 1 }, ['127.0.0.0/8', '::1']);
      const one = (index: number): Promise<Response> =>
        signIn(new Browser(harness.url), '10.6.6.6', 'guess', `person-${index}@example.com`);
      expect(await statusesOf(12, one)).toEqual([...Array(10).fill(401), 429, 429]);
      expect((await signIn(new Browser(harness.url), '10.6.6.7', 'guess')).status).toBe(401);
    });

    /** Everything of a successful answer that could reveal a limit. */
    const textOf = async (answer: Response): Promise<string> => {
      expect(answer.status).toBe(200);
      return `${answer.headers.get('content-type')} ${await answer.text()}`;
    };

    it('bound the mail that verifies an address, with the same answer', async () => {
      await start({ emailPerQuarterHour: 20 });
      await new Browser(harness.url).signUp(EMAIL);
      const ask = (): Promise<Response> => new Browser(harness.url).post('/console/auth/send-verification-email', { email: EMAIL });
      const answers = await Promise.all(Array.from({ length: 12 }, async () => textOf(await ask())));
      expect(new Set(answers).size).toBe(1);
      await harness.until(() => harness.log.filter((line) => line.includes('verify_email')).length === 5);
    });

    it("bound the mail that a stranger can cause, and leave the owner's last link usable", async () => {
      await start({ emailPerQuarterHour: 20 }, ['127.0.0.0/8', '::1']);
      const owner = new Browser(harness.url);
      await owner.signUp(EMAIL);
      const ask = (address: string, email = EMAIL): Promise<Response> =>
        new Browser(harness.url).send('POST', '/console/auth/request-password-reset', { email }, { 'x-forwarded-for': address });
      const links = (): string[] => harness.log.filter((line) => line.includes('reset_password')).map((line) => JSON.parse(line).link);
      const answers = new Set<string>();
      for (let index = 0; index < 12; index++) answers.add(await textOf(await ask('10.6.6.6')));
      expect(answers.size).toBe(1);
      await harness.until(() => links().length === 5);
      // Each client has its own limit of mails to the address. All unknown clients also share one limit.
      for (let index = 0; index < 30; index++) expect((await ask(`10.7.7.${index}`)).status).toBe(200);
      await harness.until(() => links().length === 20);
      const token = /reset-password\/([^?]+)/.exec(links().at(-1) ?? '')?.[1];
      const newPassword = 'another long password';
      expect((await new Browser(harness.url).post('/console/auth/reset-password', { token, newPassword })).status).toBe(200);
      expect((await signIn(owner, '10.1.1.1', newPassword)).status).toBe(200);
      // The limit of unknown clients does not apply to the owner's browser.
      const own = { 'x-forwarded-for': '10.1.1.1' };
      await owner.send('POST', '/console/auth/request-password-reset', { email: EMAIL }, own);
      await harness.until(() => links().length === 21);
    });
  });

  it('bound the sign-ins of an address', async () => {
    await start({ authPerMinute: 2 });
    const statuses: number[] = [];
    for (let count = 0; count < 4; count++) statuses.push((await new Browser(harness.url).signIn(`person-${count}@example.com`)).status);
    expect(statuses).toEqual([401, 401, 429, 429]);
  });
});
