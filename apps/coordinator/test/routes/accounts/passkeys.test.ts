/** Passkey routes, tested with a software authenticator. */
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { MAX_PASSKEYS } from '../../../src/accounts/second-factors/passkeys.js';
import { Browser, PASSWORD } from '../../support/console-client.js';
import { describeDatabases, startHarnessOn } from '../../support/databases.js';
import { errorOf, type Harness, NO_RATE_LIMITS } from '../../support/harness.js';
import { SoftwareAuthenticator } from '../../support/software-authenticator.js';

describeDatabases('passkeys', (fresh) => {
  let harness: Harness;
  beforeAll(async () => {
    harness = await startHarnessOn(fresh, { config: { rateLimits: NO_RATE_LIMITS } });
  });
  afterEach(() => vi.useRealTimers());
  afterAll(() => harness.close());

  const newAuthenticator = (): SoftwareAuthenticator => new SoftwareAuthenticator(harness.url, 'localhost');
  const challengeOf = async (answer: Response): Promise<string> => {
    expect(answer.status).toBe(200);
    return ((await answer.json()) as { challenge: string }).challenge;
  };
  const options = (browser: Browser, password = PASSWORD): Promise<Response> =>
    browser.post('/console/auth/passkey/generate-register-options', { password });
  const register = async (browser: Browser, authenticator: SoftwareAuthenticator): Promise<Response> => {
    const response = authenticator.create(await challengeOf(await options(browser)));
    return browser.post('/console/auth/passkey/verify-registration', { name: 'Phone', response });
  };
  const signIn = async (browser: Browser, authenticator: SoftwareAuthenticator): Promise<Response> => {
    const challenge = await challengeOf(await browser.get('/console/auth/passkey/generate-authenticate-options'));
    return browser.post('/console/auth/passkey/verify-authentication', { response: authenticator.get(challenge) });
  };
  const list = async (browser: Browser): Promise<{ id: string; name: string }[]> =>
    ((await (await browser.get('/console/v1/passkeys')).json()) as { data: { id: string; name: string }[] }).data;
  const mails = (email: string): string[] =>
    harness.log
      .map((line) => JSON.parse(line) as { msg: string; kind: string; to?: string })
      .filter(({ msg, to }) => msg === 'mail' && to === email)
      .map(({ kind }) => kind);

  it('are added with the password, sign in, and are removed with the password', async () => {
    const browser = new Browser(harness.url);
    await browser.signUp('ada@example.com');
    expect((await options(browser, 'wrong password')).status).toBe(400);
    const authenticator = newAuthenticator();
    expect((await register(browser, authenticator)).status).toBe(200);

    const other = new Browser(harness.url);
    const challenge = await challengeOf(await other.get('/console/auth/passkey/generate-authenticate-options'));
    const verify = (): Promise<Response> =>
      other.post('/console/auth/passkey/verify-authentication', { response: authenticator.get(challenge) });
    const answer = await verify();
    expect(Object.keys((await answer.json()) as object)).toEqual(['user']);
    expect((await other.get('/console/v1/me')).status).toBe(200);
    // A challenge works once.
    expect((await verify()).status).toBe(400);

    const [{ id = '', name = '' } = {}] = await list(browser);
    expect(name).toBe('Phone');
    const remove = (who: Browser, password: string): Promise<Response> =>
      who.post('/console/auth/passkey/delete-passkey', { id, password });
    const stranger = new Browser(harness.url);
    await stranger.signUp('ben@example.com');
    expect((await remove(stranger, PASSWORD)).status).toBe(401);
    expect((await remove(browser, 'wrong password')).status).toBe(400);
    expect((await remove(browser, PASSWORD)).status).toBe(200);
    expect((await signIn(new Browser(harness.url), authenticator)).status).toBe(401);
    expect(mails('ada@example.com')).toEqual(['passkey_added', 'passkey_removed']);
  });

  it('are refused without user verification', async () => {
    const browser = new Browser(harness.url);
    await browser.signUp('cem@example.com');
    const authenticator = newAuthenticator();
    authenticator.isUserVerified = false;
    expect(await errorOf(await register(browser, authenticator))).toMatchObject({ message: expect.stringContaining('did not verify you') });
    authenticator.isUserVerified = true;
    expect((await register(browser, authenticator)).status).toBe(200);
    authenticator.isUserVerified = false;
    const other = new Browser(harness.url);
    expect((await signIn(other, authenticator)).status).toBe(401);
    expect((await other.get('/console/v1/me')).status).toBe(401);
  });

  it('are added in a session of any age', async () => {
    const browser = new Browser(harness.url);
    await browser.signUp('eve@example.com');
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 2 * 24 * 3_600_000 });
    expect((await register(browser, newAuthenticator())).status).toBe(200);
  });

  it('are bounded per account', async () => {
    const browser = new Browser(harness.url);
    await browser.signUp('dee@example.com');
    for (let index = 1; index < MAX_PASSKEYS; index++) expect((await register(browser, newAuthenticator())).status).toBe(200);
    // Two concurrent registrations for the last free place. At most one may succeed.
    const other = new Browser(harness.url);
    await other.signIn('dee@example.com');
    const responses = [];
    for (const one of [browser, other]) responses.push({ one, response: newAuthenticator().create(await challengeOf(await options(one))) });
    const verify = responses.map(({ one, response }) => one.post('/console/auth/passkey/verify-registration', { name: 'Phone', response }));
    const statuses = (await Promise.all(verify)).map(({ status }) => status).sort();
    expect([
      [200, 409],
      [409, 409],
    ]).toContainEqual(statuses);
    // A passkey is stored if and only if its registration succeeded.
    expect(await list(browser)).toHaveLength(statuses[0] === 200 ? MAX_PASSKEYS : MAX_PASSKEYS - 1);
    if (statuses[0] !== 200) expect((await register(browser, newAuthenticator())).status).toBe(200);
    expect(await errorOf(await register(browser, newAuthenticator()))).toMatchObject({ code: 'conflict' });
    expect(await list(browser)).toHaveLength(MAX_PASSKEYS);
  });
});
