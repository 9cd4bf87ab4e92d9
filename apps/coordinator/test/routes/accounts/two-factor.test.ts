import { get } from 'node:http';
import { base32 } from '@better-auth/utils/base32';
import { createOTP } from '@better-auth/utils/otp';
import { sql } from 'kysely';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { Browser, PASSWORD } from '../../support/console-client.js';
import { describeDatabases, startHarnessOn } from '../../support/databases.js';
import { errorOf, type Harness } from '../../support/harness.js';

const RATE_LIMITS = { keyPerMinute: 0, addressPerMinute: 0, badKeysPerMinute: 0, authPerMinute: 0, emailPerQuarterHour: 15 };
const STEP_MS = 30_000;

describeDatabases('two-factor authentication', (fresh) => {
  let harness: Harness;
  let people = 0;
  beforeAll(async () => {
    harness = await startHarnessOn(fresh, { config: { rateLimits: RATE_LIMITS } });
  });
  afterEach(() => vi.useRealTimers());
  afterAll(() => harness.close());

  interface Person {
    readonly email: string;
    readonly browser: Browser;
    readonly secret: string;
    readonly backupCodes: readonly string[];
  }

  /** Advances the clock by TOTP time steps, so that the next code differs. */
  const passSteps = (steps: number): void => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + steps * STEP_MS });
  };
  const codeOf = (secret: string): Promise<string> => createOTP(secret).totp();
  const auth = (browser: Browser, path: string, body: object = {}): Promise<Response> =>
    browser.post(`/console/auth/two-factor/${path}`, body);
  const twoFactor = async (browser: Browser): Promise<unknown> => (await browser.get('/console/v1/two-factor')).json();
  const mails = (email: string): string[] =>
    harness.log
      .map((line) => JSON.parse(line) as { msg: string; kind: string; to?: string })
      .filter(({ msg, to }) => msg === 'mail' && to === email)
      .map(({ kind }) => kind);

  async function signedUp(): Promise<{ email: string; browser: Browser }> {
    const email = `person-${people++}@example.com`;
    const browser = new Browser(harness.url);
    expect((await browser.signUp(email)).status).toBe(200);
    return { email, browser };
  }

  /** Signs up and enables two-factor authentication. */
  async function enabled(): Promise<Person> {
    const { email, browser } = await signedUp();
    const answer = await auth(browser, 'enable', { password: PASSWORD });
    expect(answer.status).toBe(200);
    const { totpURI, backupCodes } = (await answer.json()) as { totpURI: string; backupCodes: string[] };
    const secret = new TextDecoder().decode(base32.decode(new URL(totpURI).searchParams.get('secret') ?? ''));
    expect(await twoFactor(browser)).toEqual({ enabled: false, backup_codes_left: 0 });
    expect((await auth(browser, 'verify-totp', { code: '000000' })).status).toBe(401);
    expect((await auth(browser, 'verify-totp', { code: await codeOf(secret) })).status).toBe(200);
    expect(await twoFactor(browser)).toEqual({ enabled: true, backup_codes_left: 10 });
    passSteps(2);
    return { email, browser, secret, backupCodes };
  }

  /** Returns a browser that has sent the right password and must now send a code. */
  async function pending(email: string): Promise<Browser> {
    const browser = new Browser(harness.url);
    const answer = await browser.signIn(email);
    expect(await answer.json()).toEqual({ twoFactorRedirect: true, twoFactorMethods: ['totp'] });
    expect((await browser.get('/console/v1/me')).status).toBe(401);
    return browser;
  }

  it('asks for a code after the password, and accepts each code once', async () => {
    const { email, secret } = await enabled();
    expect(mails(email)).toEqual(['two_factor_enabled']);
    const first = await pending(email);
    expect(await errorOf(await auth(first, 'verify-totp', { code: '000000' }))).toMatchObject({ code: 'not_signed_in' });
    const code = await codeOf(secret);
    const answer = await auth(first, 'verify-totp', { code });
    expect(answer.status).toBe(200);
    expect(Object.keys((await answer.json()) as object)).toEqual(['user']);
    expect((await first.get('/console/v1/me')).status).toBe(200);
    const second = await pending(email);
    expect(await errorOf(await auth(second, 'verify-totp', { code }))).toMatchObject({ message: expect.stringContaining('already used') });
    expect((await second.get('/console/v1/me')).status).toBe(401);
    passSteps(2);
    // Of two concurrent sign-ins with the same code, only one succeeds.
    const third = await pending(email);
    const next = await codeOf(secret);
    const statuses = await Promise.all([second, third].map(async (browser) => (await auth(browser, 'verify-totp', { code: next })).status));
    expect(statuses.sort()).toEqual([200, 401]);
  });

  it('ends a pending sign-in after ten minutes and after five wrong codes', async () => {
    const { email, secret } = await enabled();
    const late = await pending(email);
    passSteps(21);
    expect((await auth(late, 'verify-totp', { code: await codeOf(secret) })).status).toBe(401);
    const guesser = await pending(email);
    for (let index = 0; index < 5; index++) expect((await auth(guesser, 'verify-totp', { code: '000000' })).status).toBe(401);
    passSteps(2);
    expect((await auth(guesser, 'verify-totp', { code: await codeOf(secret) })).status).toBe(400);
    expect((await guesser.get('/console/v1/me')).status).toBe(401);
  });

  it('limits the codes of an account over all its pending sign-ins, including concurrent sign-ins', async () => {
    const { email, secret } = await enabled();
    const some = (): Promise<Browser[]> => Promise.all(Array.from({ length: 12 }, () => pending(email)));
    const browsers = [...(await some()), ...(await some())];
    const statuses = await Promise.all(browsers.map(async (browser) => (await auth(browser, 'verify-totp', { code: '000000' })).status));
    expect(statuses.filter((status) => status === 401).length).toBeLessThanOrEqual(RATE_LIMITS.emailPerQuarterHour);
    passSteps(2);
    const locked = await auth(await pending(email), 'verify-totp', { code: await codeOf(secret) });
    expect([locked.status, (await errorOf(locked)).code]).toEqual([429, 'rate_limit_exceeded']);
  });

  it('accepts each backup code once, until new codes replace all', async () => {
    const { email, browser, backupCodes } = await enabled();
    const [first = '', second = ''] = backupCodes;
    const one = await pending(email);
    expect((await auth(one, 'verify-backup-code', { code: first })).status).toBe(200);
    expect(await twoFactor(one)).toEqual({ enabled: true, backup_codes_left: 9 });
    const again = await pending(email);
    expect((await auth(again, 'verify-backup-code', { code: first })).status).toBe(401);
    expect((await auth(browser, 'generate-backup-codes', { password: 'wrong password' })).status).toBe(400);
    expect((await auth(browser, 'generate-backup-codes', { password: PASSWORD })).status).toBe(200);
    expect((await auth(again, 'verify-backup-code', { code: second })).status).toBe(401);
  });

  it('trusts a browser until two-factor authentication is disabled', async () => {
    const { email, secret, browser } = await enabled();
    const trusted = await pending(email);
    expect((await auth(trusted, 'verify-totp', { code: await codeOf(secret), trustDevice: true })).status).toBe(200);
    await trusted.post('/console/auth/sign-out');
    expect((await (await trusted.signIn(email)).json()) as object).toHaveProperty('user');
    // Ending all other sessions also revokes trusted devices.
    expect((await browser.send('DELETE', '/console/v1/sessions')).status).toBe(200);
    expect((await (await trusted.signIn(email)).json()) as object).toMatchObject({ twoFactorRedirect: true });
    expect((await auth(browser, 'disable', { password: 'wrong password' })).status).toBe(400);
    expect((await auth(browser, 'disable', { password: PASSWORD })).status).toBe(200);
    expect(mails(email)).toEqual(['two_factor_enabled', 'two_factor_disabled']);
    const { rows } = await sql`select 1 from auth_verifications where value = (select id from auth_users where email = ${email})`.execute(
      harness.app.database,
    );
    expect(rows).toEqual([]);
    expect((await new Browser(harness.url).signIn(email)).headers.getSetCookie().join()).toContain('session_token');
  });

  it('is not bypassed by mailed links', async () => {
    const { email } = await enabled();
    const browser = new Browser(harness.url);
    const linkOf = async (path: string, kind: string): Promise<string> => {
      await browser.post(`/console/auth/${path}`, { email });
      const find = (): string | undefined =>
        harness.log
          .map((line) => JSON.parse(line) as { kind?: string; to?: string; link: string })
          .find((line) => line.kind === kind && line.to === email)?.link;
      await harness.until(() => find() !== undefined);
      return (find() ?? '').slice(harness.url.length);
    };
    expect((await browser.get(await linkOf('send-verification-email', 'verify_email'))).status).toBeLessThan(400);
    expect((await browser.get('/console/v1/me')).status).toBe(401);
    const token = /reset-password\/([^?]+)/.exec(await linkOf('request-password-reset', 'reset_password'))?.[1];
    const newPassword = 'another long password';
    expect((await browser.post('/console/auth/reset-password', { token, newPassword })).status).toBe(200);
    // A password reset keeps passkeys, so the mail tells the owner to review them.
    await harness.until(() => mails(email).includes('password_changed'));
    expect(await (await browser.signIn(email, newPassword)).json()).toMatchObject({ twoFactorRedirect: true });
    expect((await browser.get('/console/v1/me')).status).toBe(401);
  });

  it('offers no unlisted route of the sign-in library through the path of a listed one', async () => {
    const { browser } = await signedUp();
    const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    for (const route of ['..\\passkey\\generate-register-options', '..\\get-session', '%2e%2e']) {
      const { port } = new URL(harness.url);
      // `fetch` would normalize the path.
      const status = await new Promise<number | undefined>((resolve, reject) => {
        const options = { port, host: '127.0.0.1', path: `/console/auth/reset-password/${route}`, headers: { cookie } };
        get(options, (answer) => resolve(answer.resume().statusCode)).on('error', reject);
      });
      expect([route, status]).toEqual([route, 404]);
    }
  });

  it('limits passwords entered within a session', async () => {
    const { browser } = await signedUp();
    const attempt = async (): Promise<number> => (await auth(browser, 'enable', { password: 'wrong password' })).status;
    for (let index = 0; index < RATE_LIMITS.emailPerQuarterHour; index++) expect(await attempt()).toBe(400);
    expect(await attempt()).toBe(429);
  });

  it('is stored encrypted, and reset by an operator', async () => {
    const { email, browser, secret, backupCodes } = await enabled();
    await pending(email);
    const tables = ['auth_two_factors', 'auth_verifications', 'auth_sessions', 'auth_users'];
    const dump = JSON.stringify(
      await Promise.all(tables.map(async (name) => (await sql`select * from ${sql.table(name)}`.execute(harness.app.database)).rows)),
    );
    for (const text of [secret, base32.encode(secret, { padding: false }), ...backupCodes]) expect(dump).not.toContain(text);
    expect(dump).not.toMatch(/"2fa-/);
    const { id } = (await (await browser.get('/console/v1/me')).json()) as { id: string };
    const admin = { authorization: `Bearer ${harness.adminKey}` };
    const view = async (): Promise<unknown> => (await harness.get(`/admin/v1/accounts/${id}`, harness.adminKey)).json();
    expect(await view()).toMatchObject({ two_factor_enabled: true, passkey_count: 0 });
    const reset = (): Promise<Response> => fetch(`${harness.url}/admin/v1/accounts/${id}/two-factor`, { method: 'DELETE', headers: admin });
    expect((await reset()).status).toBe(200);
    expect((await reset()).status).toBe(409);
    expect(await view()).toMatchObject({ two_factor_enabled: false });
    expect(mails(email)).toContain('two_factor_reset');
    expect((await harness.get('/admin/v1/actions', harness.adminKey).then((answer) => answer.json())) as object).toMatchObject({
      data: expect.arrayContaining([expect.objectContaining({ action: 'DELETE /admin/v1/accounts/:id/two-factor', subject: id })]),
    });
    const again = new Browser(harness.url);
    await again.signIn(email);
    expect((await again.get('/console/v1/me')).status).toBe(200);
  });
});
