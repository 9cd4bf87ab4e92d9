import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { listenLocally } from '../../../../../test/support/local-server.js';
import { createAuth } from '../../../src/accounts/auth.js';
import { deleteExpired } from '../../../src/accounts/expired-sessions.js';
import { readConfig } from '../../../src/config/config.js';
import { StartupError } from '../../../src/config/startup-error.js';
import { Browser, PASSWORD } from '../../support/console-client.js';
import { describeDatabases } from '../../support/databases.js';
import { errorOf, type Harness, startHarness } from '../../support/harness.js';

const CONSOLE = { publicOrigin: null, authSecret: null, requireEmailVerification: false, mail: null, adminKey: null };

describe('a coordinator that requires verified e-mail addresses', () => {
  it('passes mail to the operator, admits nobody before verification, and does not reveal accounts', async () => {
    const mails: { headers: Record<string, unknown>; body: { to: string; kind: string; link: string } }[] = [];
    const post = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        mails.push({ headers: request.headers, body: JSON.parse(Buffer.concat(chunks).toString()) });
        response.writeHead(mails.length === 1 ? 500 : 204).end();
      });
    });
    const url = `${await listenLocally(post)}/send`;
    const harness = await startHarness({
      config: {
        development: false,
        metrics: { host: '127.0.0.1', port: 0 },
        console: { ...CONSOLE, requireEmailVerification: true, mail: { kind: 'http', url, token: 'mail-token' } },
      },
    });
    const person = new Browser(harness.url);
    const first = await person.signUp('ada@example.com');
    expect(first.status).toBe(200);
    expect(person.cookies.size).toBe(0);
    await harness.until(() => mails.length === 1);
    expect(mails[0]).toMatchObject({
      headers: { authorization: 'Bearer mail-token' },
      body: { to: 'ada@example.com', kind: 'verify_email' },
    });
    // The first mail was rejected; only the operator learns of the failure.
    await harness.until(() => harness.log.some((line) => line.includes('mail failed')));
    const again = await new Browser(harness.url).signUp('ada@example.com', 'some other password');
    const bodies = [await first.json(), await again.json()] as Record<string, Record<string, unknown>>[];
    expect(bodies.map((body) => Object.keys(body.user ?? {}).sort())[0]).toEqual(Object.keys(bodies[1]?.user ?? {}).sort());
    expect(again.status).toBe(200);
    expect((await person.signIn('ada@example.com')).status).toBe(403);
    expect((await person.post('/console/auth/send-verification-email', { email: 'ada@example.com' })).status).toBe(200);
    expect((await person.post('/console/auth/send-verification-email', { email: 'nobody@example.com' })).status).toBe(200);
    await harness.until(() => mails.length >= 2);
    const link = mails.at(-1)?.body.link ?? '';
    expect(JSON.stringify(harness.log)).not.toContain(link);
    expect((await person.get(link.slice(harness.url.length))).status).toBe(302);
    expect((await new Browser(harness.url).signIn('ada@example.com')).status).toBe(200);
    expect(mails.every(({ body }) => body.to === 'ada@example.com')).toBe(true);
    const metrics = async (): Promise<string> => (await fetch(`http://127.0.0.1:${harness.app.metricsPort}/metrics`)).text();
    await harness.until(async () => /inference_mails_total\{kind="verify_email",outcome="sent"\} [1-9]/.test(await metrics()));
    expect(await metrics()).toContain('inference_mails_total{kind="verify_email",outcome="failed"} 1\n');
    await harness.close();
    await new Promise((resolve) => void post.close(resolve));
  });
});

describe('the operator', () => {
  let harness: Harness;
  afterEach(() => harness.close());

  it('signs in with the admin key of the environment', async () => {
    const adminKey = `service-${randomBytes(32).toString('base64url')}`;
    harness = await startHarness({ config: { development: false, console: { ...CONSOLE, adminKey } } });
    expect((await harness.get('/admin/v1/providers', adminKey)).status).toBe(200);
    expect((await harness.get('/v1/models', adminKey)).status).toBe(403);
    const rows = await harness.app.database.selectFrom('api_keys').selectAll().execute();
    expect(JSON.stringify(rows)).not.toContain(adminKey);
    await harness.app.apiKeyCache.revoke(rows[0]?.id ?? '');
    const again = startHarness({ config: { dataDir: harness.dataDir, development: false, console: { ...CONSOLE, adminKey } } });
    await expect(again).rejects.toThrow(StartupError);
  });

  it("ignores forged headers about the console's origin", async () => {
    harness = await startHarness();
    const person = new Browser(harness.url);
    await person.signUp('ada@example.com');
    const headers = { 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https', forwarded: 'host=evil.example' };
    await person.send('POST', '/console/auth/request-password-reset', { email: 'ada@example.com' }, headers);
    await harness.until(() => harness.log.some((line) => line.includes('reset_password')));
    expect(harness.log.join('')).not.toContain('evil.example');
    const named = new URL(harness.url);
    const request = {
      method: 'POST',
      headers: { host: 'evil.example', origin: 'http://evil.example', 'content-type': 'application/json' },
    };
    const status = await new Promise<number>((resolve, reject) => {
      import('node:http').then(({ request: send }) => {
        const call = send({ ...request, host: named.hostname, port: named.port, path: '/console/auth/sign-in/email' }, (answer) => {
          answer.resume();
          resolve(answer.statusCode ?? 0);
        });
        call.on('error', reject);
        call.end(JSON.stringify({ email: 'ada@example.com', password: PASSWORD }));
      }, reject);
    });
    expect(status).toBe(403);
  });

  it('may read account data with a session, and change nothing that requires a key', async () => {
    harness = await startHarness();
    const person = new Browser(harness.url);
    await person.signUp('ada@example.com');
    expect((await person.get('/v1/models')).status).toBe(200);
    expect((await person.get('/v1/receipts/none')).status).toBe(404);
    const foreign = await fetch(`${harness.url}/v1/models`, { headers: { cookie: 'balancer=1' } });
    expect(await errorOf(foreign)).toMatchObject({ code: 'invalid_api_key' });
    expect((await person.post('/v1/chat/completions', { model: 'm', messages: [] })).status).toBe(401);
    const suspended = await person.get('/console/v1/me');
    const { id } = (await suspended.json()) as { id: string };
    const admin = { authorization: `Bearer ${harness.adminKey}` };
    await person.send('PATCH', `/admin/v1/accounts/${id}`, { suspended: true }, admin);
    expect(await errorOf(await person.get('/v1/models'))).toMatchObject({ code: 'account_suspended' });
  });
});

describeDatabases('expired sessions and links', (fresh) => {
  it('are removed, but not live sessions', async () => {
    const place = await fresh();
    const database = await place.open();
    const settings = { secret: 'x'.repeat(32), publicUrl: 'http://127.0.0.1:1', mailer: null, requireEmailVerification: false };
    const unused = async (): Promise<void> => {};
    const auth = createAuth({ ...settings, database, onSignUp: unused, onPasswordChange: unused, onDelete: unused, onError: () => {} });
    await auth.api.signUpEmail({ body: { email: 'ada@example.com', password: PASSWORD, name: 'Ada' } });
    const sessions = async (): Promise<number> => (await database.selectFrom('auth_sessions').select('id').execute()).length;
    await deleteExpired(auth, new Date());
    expect(await sessions()).toBe(1);
    await deleteExpired(auth, new Date(Date.now() + 15 * 86_400_000));
    expect(await sessions()).toBe(0);
    await database.destroy();
    await place.remove();
  });
});

describe('settings of the console', () => {
  it('are refused with a sentence if invalid', () => {
    const bad: [Record<string, string>, RegExp][] = [
      [{ PUBLIC_URL: 'gateway.example' }, /PUBLIC_URL must be an address/],
      [{ PUBLIC_URL: 'https://gateway.example/console' }, /without a path/],
      [{ AUTH_SECRET: 'short-secret' }, /AUTH_SECRET must be at least 32/],
      [{ ADMIN_KEY: 'service-short' }, /ADMIN_KEY must be service-/],
      [{ STRIPE_SECRET_KEY: 'sk_live_x' }, /must be set together/],
      [{ TRUSTED_PROXIES: '10.0.0.0/8,everyone' }, /not "everyone"/],
      [{ TRUSTED_PROXIES: '10.0.0.0/64' }, /TRUSTED_PROXIES/],
      [{ REQUIRE_EMAIL_VERIFICATION: '1' }, /needs SMTP_URL or MAIL_URL/],
      [{ RATE_LIMIT_KEY: '-1' }, /RATE_LIMIT_KEY must be a whole number/],
    ];
    for (const [env, message] of bad) expect(() => readConfig(env)).toThrow(message);
    for (const secret of ['short-secret', 'service-short', 'sk_live_x']) {
      for (const [env] of bad) {
        try {
          readConfig(env);
        } catch (error) {
          expect(String(error)).not.toContain(secret);
        }
      }
    }
    expect(readConfig({ PUBLIC_URL: 'https://Gateway.example/', TRUSTED_PROXIES: '10.0.0.0/8, ::1' })).toMatchObject({
      console: { publicOrigin: 'https://gateway.example' },
      trustedProxies: ['10.0.0.0/8', '::1'],
    });
  });
});
