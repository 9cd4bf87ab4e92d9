import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import {
  ConsoleKeyPageSchema,
  ConsoleMeSchema,
  ConsoleNewKeySchema,
  ConsoleSessionListSchema,
  ConsoleSettingsSchema,
} from '@inference/formats';
import { betterAuth } from 'better-auth';
import { getAuthTables } from 'better-auth/db';
import { sql } from 'kysely';
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { authOptions } from '../../../src/accounts/auth.js';
import { PasswordHasher } from '../../../src/accounts/passwords/password-hasher.js';
import { Browser, PASSWORD } from '../../support/console-client.js';
import { describeDatabases, startHarnessOn } from '../../support/databases.js';
import { errorOf, type Harness, NO_RATE_LIMITS, startHarness } from '../../support/harness.js';

async function bodyAs(schema: TSchema, answer: Response): Promise<unknown> {
  const body: unknown = await answer.json();
  expect([...Compile(schema).Errors(body)]).toEqual([]);
  return body;
}

describeDatabases('accounts', (fresh) => {
  let harness: Harness;
  let people = 0;
  const newEmail = (): string => `person-${++people}@example.com`;
  const newPerson = async (): Promise<Browser> => {
    const browser = new Browser(harness.url);
    expect((await browser.signUp(newEmail())).status).toBe(200);
    return browser;
  };
  const models = (key: string): Promise<Response> => harness.get('/v1/models', key);

  beforeAll(async () => {
    harness = await startHarnessOn(fresh, { config: { rateLimits: NO_RATE_LIMITS } });
  });
  afterAll(() => harness.close());

  it('has the tables that better-auth expects', async () => {
    const unused = async (): Promise<void> => {};
    const options = authOptions({
      database: harness.app.database,
      secret: 'x'.repeat(32),
      publicUrl: harness.url,
      mailer: null,
      requireEmailVerification: false,
      onSignUp: unused,
      onPasswordChange: unused,
      onDelete: unused,
      onError: () => {},
    });
    const { checkSchema } = await betterAuth(options).$context;
    await expect(checkSchema?.()).resolves.toBeUndefined();
    await expect((await betterAuth(withOneTableMore(options)).$context).checkSchema?.()).rejects.toThrow(/authMore|auth_more/);
    const tables = await harness.app.database.introspection.getTables();
    const columns = tables
      .filter((table) => table.name.startsWith('auth_'))
      .flatMap((table) => table.columns.map((column) => `${table.name}.${column.name}`));
    const wanted = Object.values(getAuthTables(options)).flatMap(({ modelName, fields }) =>
      ['id', ...Object.entries(fields).map(([name, field]) => field.fieldName ?? name)].map((name) => `${snake(modelName)}.${snake(name)}`),
    );
    expect(columns.sort()).toEqual(wanted.sort());
  });

  it('sign-up creates one account and an HttpOnly session', async () => {
    const browser = new Browser(harness.url);
    const email = newEmail();
    const answer = await browser.signUp(email, PASSWORD, 'Ada Lovelace');
    expect(answer.status).toBe(200);
    const [cookie = ''] = answer.headers.getSetCookie();
    expect(cookie).toMatch(/; HttpOnly/i);
    expect(cookie).toMatch(/; SameSite=Lax/i);
    expect(cookie).toMatch(/; Path=\//i);
    expect(cookie).not.toMatch(/; Domain/i);
    const token = decodeURIComponent(/=([^;]*)/.exec(cookie)?.[1] ?? '').split('.')[0] ?? '';
    expect(token).not.toBe('');
    expect(JSON.stringify(await answer.json())).not.toContain(token);
    const me = await bodyAs(ConsoleMeSchema, await browser.get('/console/v1/me'));
    expect(me).toMatchObject({ name: 'Ada Lovelace', email, is_admin: false });
    const { id } = me as { id: string };
    expect(await harness.app.database.selectFrom('accounts').selectAll().where('id', '=', id).execute()).toHaveLength(1);
    expect(harness.log.join('')).not.toContain(PASSWORD);
  });

  it('signs out and in again, with a new session each time', async () => {
    const browser = await newPerson();
    const [first] = browser.cookies.values();
    const { email } = (await (await browser.get('/console/v1/me')).json()) as { email: string };
    const stolen = new Browser(harness.url);
    for (const [name, value] of browser.cookies) stolen.cookies.set(name, value);
    expect((await browser.send('POST', '/console/auth/sign-out', '')).status).toBe(200);
    expect((await browser.get('/console/v1/me')).status).toBe(401);
    expect((await stolen.get('/console/v1/me')).status).toBe(401);
    expect((await browser.signIn(email.toUpperCase())).status).toBe(200);
    expect([...browser.cookies.values()]).not.toContain(first);
    expect((await browser.get('/console/v1/me')).status).toBe(200);
  });

  it('rejects a session id chosen by the client', async () => {
    const victim = new Browser(harness.url);
    const attacker = await newPerson();
    const email = newEmail();
    await new Browser(harness.url).signUp(email);
    for (const [name, value] of attacker.cookies) victim.cookies.set(name, value);
    expect((await victim.signIn(email)).status).toBe(200);
    expect([...victim.cookies.values()]).not.toEqual([...attacker.cookies.values()]);
    expect(await (await attacker.get('/console/v1/me')).json()).not.toMatchObject({ email });
    const made = new Browser(harness.url);
    made.cookies.set([...attacker.cookies.keys()][0] ?? '', 'chosen.signature');
    expect((await made.get('/console/v1/me')).status).toBe(401);
  });

  it('lists sessions without their tokens, and ends them at once', async () => {
    const browser = await newPerson();
    const { email } = (await (await browser.get('/console/v1/me')).json()) as { email: string };
    const other = new Browser(harness.url);
    await other.signIn(email);
    const answer = await browser.get('/console/v1/sessions');
    const text = await answer.clone().text();
    const { data } = (await bodyAs(ConsoleSessionListSchema, answer)) as { data: { id: string; current: boolean }[] };
    expect(data.map((session) => session.current).sort()).toEqual([false, true]);
    for (const value of other.cookies.values()) expect(text).not.toContain(decodeURIComponent(value).split('.')[0]);
    const theirs = data.find((session) => !session.current)?.id ?? '';
    const stranger = await newPerson();
    expect((await stranger.send('DELETE', `/console/v1/sessions/${theirs}`)).status).toBe(404);
    expect((await other.get('/console/v1/me')).status).toBe(200);
    expect((await browser.send('DELETE', `/console/v1/sessions/${theirs}`)).status).toBe(200);
    expect((await other.get('/console/v1/me')).status).toBe(401);
    expect((await browser.get('/console/v1/me')).status).toBe(200);
  });

  it('does not reveal whether an e-mail address has an account, at sign-in and at password reset', async () => {
    const known = newEmail();
    await new Browser(harness.url).signUp(known);
    // Each attempt computes one password hash. Otherwise, a faster response would reveal that the address is unknown.
    const hashes = [vi.spyOn(PasswordHasher.prototype, 'verify'), vi.spyOn(PasswordHasher.prototype, 'hash')];
    for (const email of [known, 'nobody@example.com']) {
      for (const spy of hashes) spy.mockClear();
      const answer = await new Browser(harness.url).signIn(email, 'wrong password!');
      expect(answer.status).toBe(401);
      expect(await errorOf(answer)).toMatchObject({ message: 'Invalid email or password', code: 'not_signed_in' });
      expect(hashes.reduce((sum, { mock }) => sum + mock.calls.length, 0)).toBe(1);
    }
    for (const spy of hashes) spy.mockRestore();
    const resets = await Promise.all(
      [known, 'nobody@example.com'].map(async (email) => {
        const answer = await new Browser(harness.url).post('/console/auth/request-password-reset', { email });
        return [answer.status, await answer.text()];
      }),
    );
    expect(resets[0]).toEqual(resets[1]);
  });

  it('resets a password by a link that works once, and ends every session', async () => {
    const browser = await newPerson();
    const { email } = (await (await browser.get('/console/v1/me')).json()) as { email: string };
    expect((await browser.post('/console/auth/request-password-reset', { email, redirectTo: '/reset' })).status).toBe(200);
    const mail = await mailTo(harness, email);
    expect(mail.link).toContain(`${harness.url}/console/auth/reset-password/`);
    const visitor = new Browser(harness.url);
    const onwards = await visitor.get(mail.link.slice(harness.url.length));
    expect(onwards.status).toBe(302);
    const location = new URL(onwards.headers.get('location') ?? '', harness.url);
    expect([location.origin, location.pathname]).toEqual([harness.url, '/reset']);
    const token = location.searchParams.get('token');
    expect((await visitor.post('/console/auth/reset-password', { token, newPassword: 'short' })).status).toBe(400);
    expect((await visitor.post('/console/auth/reset-password', { token, newPassword: 'another long password' })).status).toBe(200);
    expect((await visitor.post('/console/auth/reset-password', { token, newPassword: 'a third long password' })).status).toBe(400);
    expect((await browser.get('/console/v1/me')).status).toBe(401);
    expect((await visitor.signIn(email)).status).toBe(401);
    expect((await visitor.signIn(email, 'another long password')).status).toBe(200);
    const evil = await visitor.post('/console/auth/request-password-reset', { email, redirectTo: 'https://evil.example/' });
    expect(evil.status).toBe(403);
    for (const path of ['/reset-password/some-token', '/verify-email?token=x']) {
      const answer = await visitor.get(`/console/auth${path}${path.includes('?') ? '&' : '?'}callbackURL=https://evil.example/`);
      expect(answer.headers.get('location') ?? '').not.toContain('evil.example');
    }
  });

  it('revokes every other reset link with a new password', async () => {
    const browser = await newPerson();
    const { email } = (await (await browser.get('/console/v1/me')).json()) as { email: string };
    const visitor = new Browser(harness.url);
    const reset = async (link: string, newPassword: string): Promise<number> => {
      const onwards = await visitor.get(link.slice(harness.url.length));
      const token = new URL(onwards.headers.get('location') ?? '', harness.url).searchParams.get('token');
      return (await visitor.post('/console/auth/reset-password', { token, newPassword })).status;
    };
    const seen = new Set<string>();
    const nextLink = async (): Promise<string> => {
      await browser.post('/console/auth/request-password-reset', { email, redirectTo: '/reset' });
      let link = '';
      await harness.until(async () => {
        link = (await mailTo(harness, email)).link;
        return !seen.has(link);
      });
      seen.add(link);
      return link;
    };
    const [first, second, third] = [await nextLink(), await nextLink(), await nextLink()];
    expect(await reset(first, 'another long password')).toBe(200);
    expect(await reset(second, 'a third long password')).toBe(400);
    expect(await reset(third, 'a third long password')).toBe(400);
    expect((await visitor.signIn(email, 'another long password')).status).toBe(200);
    const link = await nextLink();
    const changed = { currentPassword: 'another long password', newPassword: 'a fourth long password' };
    expect((await visitor.post('/console/auth/change-password', changed)).status).toBe(200);
    expect(await reset(link, 'a fifth long password')).toBe(400);
  });

  it("ends the playground's keys, which nobody sees, with the password under which they were made", async () => {
    const browser = await newPerson();
    const { email } = (await (await browser.get('/console/v1/me')).json()) as { email: string };
    const playgroundKey = async (): Promise<string> =>
      ((await (await browser.post('/console/v1/playground-key')).json()) as { secret: string }).secret;
    const beforeChange = await playgroundKey();
    expect((await models(beforeChange)).status).toBe(200);
    const changed = { currentPassword: PASSWORD, newPassword: 'another long password', revokeOtherSessions: true };
    expect((await browser.post('/console/auth/change-password', changed)).status).toBe(200);
    expect((await models(beforeChange)).status).toBe(401);
    const beforeReset = await playgroundKey();
    const own = (await browser.newKey()).secret;
    await browser.post('/console/auth/request-password-reset', { email, redirectTo: '/reset' });
    const visitor = new Browser(harness.url);
    const onwards = await visitor.get((await mailTo(harness, email)).link.slice(harness.url.length));
    const token = new URL(onwards.headers.get('location') ?? '', harness.url).searchParams.get('token');
    expect((await visitor.post('/console/auth/reset-password', { token, newPassword: 'a third long password' })).status).toBe(200);
    expect([(await models(beforeReset)).status, (await models(own)).status]).toEqual([401, 200]);
  });

  it('refuses cross-site requests and bodies that are not JSON', async () => {
    const browser = await newPerson();
    const attempts: [string, Record<string, string>, string | undefined][] = [
      ['another origin', { origin: 'https://evil.example' }, '{"name":"x"}'],
      ['an origin that only begins alike', { origin: `${harness.url}.evil.example` }, '{"name":"x"}'],
      ['no origin', { origin: 'null' }, '{"name":"x"}'],
      ['a form', { 'content-type': 'application/x-www-form-urlencoded' }, 'name=x'],
      ['plain text', { 'content-type': 'text/plain' }, '{"name":"x"}'],
    ];
    for (const [, headers, body] of attempts) {
      const answer = await browser.send('POST', '/console/v1/keys', body, headers);
      expect([403, 415]).toContain(answer.status);
      const out = await browser.send('POST', '/console/auth/sign-out', body, headers);
      expect([403, 415]).toContain(out.status);
    }
    const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const bare = { method: 'POST', body: '{"name":"x"}', headers: { cookie, 'content-type': 'application/json' } };
    expect((await fetch(`${harness.url}/console/v1/keys`, bare)).status).toBe(403);
    expect((await browser.send('DELETE', '/console/v1/sessions/x', undefined, { origin: 'https://evil.example' })).status).toBe(403);
    const foreign = new Browser(harness.url);
    foreign.origin = 'https://evil.example';
    expect((await foreign.signIn('someone@example.com')).status).toBe(403);
    expect((await browser.get('/console/v1/keys')).status).toBe(200);
    const renamed = await fetch(`${harness.url}/console/v1/me`, { headers: { cookie } });
    expect(renamed.headers.get('access-control-allow-origin')).toBeNull();
  });

  it('refuses invalid e-mail addresses and bodies', async () => {
    const bad = [
      'ada',
      'ada@',
      'ädä@example.com',
      'ada@exämple.com',
      'K@example.com'.replace('K', '\u212A'),
      'a@b.c\n',
      `${'x'.repeat(300)}@example.com`,
      '',
      7,
      null,
    ];
    for (const email of bad) {
      const answer = await new Browser(harness.url).post('/console/auth/sign-up/email', { email, password: PASSWORD, name: 'x' });
      expect([email, answer.status]).toEqual([email, 400]);
      expect(await errorOf(answer)).toMatchObject({ type: 'invalid_request_error' });
    }
    const browser = new Browser(harness.url);
    expect((await browser.signUp(newEmail(), 'short')).status).toBe(400);
    expect((await browser.signUp(newEmail(), 'x'.repeat(129))).status).toBe(400);
    expect((await browser.post('/console/auth/sign-in/email', '{"email": ')).status).toBe(400);
    expect((await browser.post('/console/auth/sign-in/email', `{"email":"${'x'.repeat(70_000)}"}`)).status).toBe(413);
    expect((await browser.post('/console/auth/sign-up/social', {})).status).toBe(404);
    expect((await browser.get('/console/auth/list-sessions')).status).toBe(404);
    const taken = newEmail();
    const both = await Promise.all([new Browser(harness.url).signUp(taken), new Browser(harness.url).signUp(taken)]);
    expect(both.map((answer) => answer.status).sort()).toEqual([200, 400]);
  });

  it('creates keys that work, are shown once and stored hashed', async () => {
    const browser = await newPerson();
    const made = await browser.post('/console/v1/keys', { name: 'laptop' });
    expect(made.status).toBe(201);
    const { key, secret } = (await bodyAs(ConsoleNewKeySchema, made)) as { key: { id: string; prefix: string }; secret: string };
    expect(secret).toMatch(/^service-[A-Za-z0-9_-]{43}$/);
    expect(secret.startsWith(key.prefix)).toBe(true);
    expect((await models(secret)).status).toBe(200);
    const list = await browser.get('/console/v1/keys');
    expect(await list.clone().text()).not.toContain(secret);
    expect(await bodyAs(ConsoleKeyPageSchema, list)).toMatchObject({ data: [{ name: 'laptop', state: 'active' }], next_cursor: null });
    const rows = await harness.app.database.selectFrom('api_keys').selectAll().execute();
    expect(JSON.stringify(rows)).not.toContain(secret);
    expect(harness.log.join('')).not.toContain(secret);
    expect((await browser.send('DELETE', `/console/v1/keys/${key.id}`)).status).toBe(200);
    expect((await models(secret)).status).toBe(401);
    expect(await (await browser.send('DELETE', `/console/v1/keys/${key.id}`)).json()).toMatchObject({ state: 'revoked' });
  });

  it('lists keys page by page, each once', async () => {
    const browser = await newPerson();
    for (const name of ['a', 'b', 'c', 'd', 'e']) await browser.newKey({ name });
    const seen: string[] = [];
    let path = '/console/v1/keys?limit=2';
    for (let pages = 0; pages < 5 && path !== ''; pages++) {
      const page = (await (await browser.get(path)).json()) as { data: { name: string }[]; next_cursor: string | null };
      seen.push(...page.data.map((key) => key.name));
      path = page.next_cursor === null ? '' : `/console/v1/keys?limit=2&cursor=${page.next_cursor}`;
    }
    expect(seen.sort()).toEqual(['a', 'b', 'c', 'd', 'e']);
    for (const query of ['limit=0', 'limit=201', 'limit=x', 'cursor=zzz']) {
      expect((await browser.get(`/console/v1/keys?${query}`)).status).toBe(400);
    }
  });

  it('enforces expiry and models of keys, in the error format of each endpoint', async () => {
    const browser = await newPerson();
    const { secret: short, id: shortId } = await browser.newKey({ expires_at: new Date(Date.now() + 3_600_000).toISOString() });
    expect((await models(short)).status).toBe(200);
    // As if the hour had passed.
    await harness.app.database
      .updateTable('api_keys')
      .set({ expires_at: Date.now() - 1 })
      .where('id', '=', shortId)
      .execute();
    harness.app.apiKeyCache.changed(shortId);
    expect(await errorOf(await models(short))).toMatchObject({ code: 'invalid_api_key', message: 'The API key has expired.' });
    const { secret, id } = await browser.newKey({ models: ['a/allowed'], spend_limit_micro_usd: 5 });
    const ask = (path: string, body: object): Promise<Response> => harness.post(path, body, { 'x-api-key': secret });
    const messages = [{ role: 'user', content: 'hi' }];
    const chat = await ask('/v1/chat/completions', { model: 'not/allowed', messages });
    expect([chat.status, await errorOf(chat)]).toMatchObject([403, { param: 'model', type: 'permission_error' }]);
    const anthropic = await ask('/v1/messages', { model: 'not/allowed', max_tokens: 5, messages });
    expect([anthropic.status, await anthropic.json()]).toMatchObject([403, { type: 'error', error: { type: 'permission_error' } }]);
    expect((await ask('/v1/chat/completions', { model: 'a/allowed', messages })).status).toBe(404);
    expect((await browser.send('PATCH', `/console/v1/keys/${id}`, { models: null })).status).toBe(200);
    expect((await ask('/v1/chat/completions', { model: 'not/allowed', messages })).status).toBe(404);
    for (const body of [
      { name: '' },
      { name: 'x', models: [] },
      { name: 'x', spend_limit_micro_usd: 0.5 },
      { name: 'x', spend_limit_micro_usd: -1 },
      { name: 'x', budget_micro_usd: 0 },
      { name: 'x', budget_micro_usd: 1, budget_period: 'year' },
      { name: 'x', budget_period: 'week' },
      { name: 'x', expires_at: '2020-01-01T00:00:00Z' },
      { name: 'x', expires_at: 'soon' },
      { name: 'x', kind: 'admin' },
    ]) {
      expect((await browser.post('/console/v1/keys', body)).status).toBe(400);
    }
  });

  it('hides the keys of other accounts and refuses changes', async () => {
    const [owner, stranger] = [await newPerson(), await newPerson()];
    const { id, secret } = await owner.newKey();
    expect((await stranger.send('PATCH', `/console/v1/keys/${id}`, { name: 'mine' })).status).toBe(404);
    expect((await stranger.send('DELETE', `/console/v1/keys/${id}`)).status).toBe(404);
    expect(await (await stranger.get('/console/v1/keys')).json()).toMatchObject({ data: [] });
    expect((await models(secret)).status).toBe(200);
    expect((await harness.get('/console/v1/keys', secret)).status).toBe(401);
  });

  it('revokes a key under load: no later request passes', async () => {
    const browser = await newPerson();
    const { id, secret } = await browser.newKey();
    const requests: Promise<Response>[] = [];
    for (let count = 0; count < 10; count++) requests.push(models(secret));
    const revoking = Promise.all([1, 2, 3].map(() => browser.send('DELETE', `/console/v1/keys/${id}`)));
    for (let count = 0; count < 10; count++) requests.push(models(secret));
    expect((await revoking).map((answer) => answer.status)).toEqual([200, 200, 200]);
    const after = await Promise.all(Array.from({ length: 10 }, () => models(secret)));
    expect(after.map((answer) => answer.status)).toEqual(Array(10).fill(401));
    for (const answer of await Promise.all(requests)) expect([200, 401]).toContain(answer.status);
  });

  it('closes an account only with its password, and its keys stop at once', async () => {
    const browser = await newPerson();
    const { id, email } = (await (await browser.get('/console/v1/me')).json()) as { id: string; email: string };
    const { secret } = await browser.newKey();
    expect((await models(secret)).status).toBe(200);
    expect((await browser.post('/console/auth/delete-user', {})).status).toBe(400);
    expect((await browser.post('/console/auth/delete-user', { password: 'wrong password!' })).status).toBe(400);
    expect((await models(secret)).status).toBe(200);
    expect((await browser.post('/console/auth/delete-user', { password: PASSWORD })).status).toBe(200);
    expect((await models(secret)).status).toBe(401);
    expect((await browser.get('/console/v1/me')).status).toBe(401);
    expect((await browser.signIn(email)).status).toBe(401);
    const row = await harness.app.database.selectFrom('accounts').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
    expect([row.name, row.deleted_at]).toEqual(['', expect.any(Number)]);
    // A closed account receives no deposits and no machines, because nobody could use the credit.
    const admin = { authorization: `Bearer ${harness.adminKey}` };
    const gifts: [string, object][] = [
      [`/admin/v1/accounts/${id}/deposits`, { amount_micro_usd: 10_000, reference: `late-${id}` }],
      [`/admin/v1/providers/${'0'.repeat(32)}/link`, { account_id: id }],
    ];
    for (const [path, body] of gifts) expect([path, (await browser.send('POST', path, body, admin)).status]).toEqual([path, 409]);
    // The e-mail address can sign up again. The new account has no data of the deleted one.
    expect((await browser.signUp(email)).status).toBe(200);
    expect(await (await browser.get('/console/v1/keys')).json()).toMatchObject({ data: [] });
  });

  it('lets operators suspend and reinstate accounts, by key or by the admin flag', async () => {
    const [operator, person] = [await newPerson(), await newPerson()];
    const { id } = (await (await person.get('/console/v1/me')).json()) as { id: string };
    const own = (await (await operator.get('/console/v1/me')).json()) as { id: string; email: string };
    const { secret } = await person.newKey();
    expect((await operator.get('/admin/v1/accounts')).status).toBe(403);
    const asAdmin = (method: string, path: string, body?: unknown): Promise<Response> =>
      new Browser(harness.url).send(method, path, body, { authorization: `Bearer ${harness.adminKey}` });
    expect((await asAdmin('PATCH', `/admin/v1/accounts/${own.id}`, { is_admin: true })).status).toBe(200);
    expect(await (await operator.get(`/admin/v1/accounts?search=${own.email}`)).json()).toMatchObject({
      data: [{ id: own.id, email: own.email, is_admin: true }],
    });
    const suspend = (suspended: boolean): Promise<Response> => operator.send('PATCH', `/admin/v1/accounts/${id}`, { suspended });
    expect((await suspend(true)).status).toBe(200);
    expect(await errorOf(await models(secret))).toMatchObject({ code: 'account_suspended' });
    expect((await person.get('/console/v1/me')).status).toBe(403);
    expect((await suspend(false)).status).toBe(200);
    expect((await models(secret)).status).toBe(200);
    expect((await operator.send('PATCH', `/admin/v1/accounts/${id}`, { suspended: true }, { origin: 'https://evil.example' })).status).toBe(
      403,
    );
    expect((await operator.send('PATCH', '/admin/v1/accounts/nobody', { suspended: true })).status).toBe(404);
    expect((await person.get('/admin/v1/providers')).status).toBe(403);
    expect((await operator.get('/admin/v1/providers')).status).toBe(200);
  });

  it('starts no session for a token, and ignores cookies beside one', async () => {
    const owner = await newPerson();
    for (const path of ['/device/code', '/device/token', '/device/approve'])
      expect((await owner.post(`/console/auth${path}`)).status).toBe(404);
    const [cookie = ''] = owner.cookies.values();
    const [token = ''] = decodeURIComponent(cookie).split('.');
    const agent = new Browser(harness.url);
    for (const bearer of [token, cookie, 'nonsense']) {
      const headers = { authorization: `Bearer ${bearer}` };
      expect((await agent.send('GET', '/console/v1/me', undefined, headers)).status).toBe(401);
      expect((await owner.send('POST', '/console/v1/keys', { name: 'x' }, headers)).status).toBe(401);
    }
  });

  it('lists a provider that an operator linked', async () => {
    const owner = await newPerson();
    const { id } = (await (await owner.get('/console/v1/me')).json()) as { id: string };
    const provider = await harness.provider();
    const admin = { authorization: `Bearer ${harness.adminKey}` };
    const { providers } = (await (await harness.get('/v1/providers/attestation')).json()) as { providers: { provider_id: string }[] };
    const providerId = providers[0]?.provider_id ?? '';
    expect((await owner.send('POST', `/admin/v1/providers/${providerId}/link`, { account_id: id }, admin)).status).toBe(200);
    expect((await owner.send('POST', `/admin/v1/providers/${providerId}/link`, { account_id: 'nobody' }, admin)).status).toBe(404);
    expect((await owner.send('POST', '/admin/v1/providers/nonsense/link', { account_id: id }, admin)).status).toBe(400);
    expect(await (await owner.get('/console/v1/machines')).json()).toMatchObject({
      data: [{ provider_id: providerId, live: { status: 'online', simulated: true } }],
    });
    provider.close();
    await harness.until(async () => {
      const { data } = (await (await owner.get('/console/v1/machines')).json()) as { data: { live: unknown }[] };
      return data[0]?.live === null;
    });
  });
});

describe('the console', () => {
  let harness: Harness;
  afterAll(() => harness.close());

  it('accepts only its own public address, with cookies for that host and HTTPS only', async () => {
    harness = await startHarness({ config: { console: { ...consoleDefaults, publicOrigin: 'https://gateway.example' } } });
    const browser = new Browser(harness.url);
    expect((await browser.signUp('ada@example.com')).status).toBe(403);
    browser.origin = 'https://gateway.example';
    const answer = await browser.signUp('ada@example.com');
    expect(answer.status).toBe(200);
    const [cookie = ''] = answer.headers.getSetCookie();
    expect(cookie).toMatch(/^__Host-inference\.session_token=/);
    expect(cookie).toMatch(/; Secure/i);
    expect((await browser.get('/console/v1/me')).status).toBe(200);
    await browser.post('/console/auth/request-password-reset', { email: 'ada@example.com', redirectTo: '/reset' });
    expect((await mailTo(harness, 'ada@example.com')).link).toMatch(/^https:\/\/gateway\.example\/console\/auth\/reset-password\//);
    expect(await bodyAs(ConsoleSettingsSchema, await browser.get('/console/v1/settings'))).toMatchObject({ deposits: ['development'] });
  });

  it('creates its secret with mode 0600, and reuses it after restarts', async () => {
    const directory = join(harness.dataDir, 'coordinator');
    expect(readdirSync(directory)).toContain('auth-secret');
    expect(statSync(join(directory, 'auth-secret')).mode & 0o777).toBe(0o600);
  });
});

it.each([
  ['the operator flag', 'update of admin_since on accounts'],
  ['the playground keys', 'update of revoked_at on api_keys'],
])('a change by an operator is stored as a whole or not at all, if storing %s fails', async (_what, event) => {
  const harness = await startHarness({ config: { rateLimits: NO_RATE_LIMITS } });
  try {
    const person = new Browser(harness.url);
    await person.signUp('ada@example.com');
    const { id } = (await (await person.get('/console/v1/me')).json()) as { id: string };
    expect((await person.post('/console/v1/playground-key')).status).toBe(201);
    await sql`create trigger failing before ${sql.raw(event)} begin select raise(abort, 'refused'); end`.execute(harness.app.database);
    const admin = { authorization: `Bearer ${harness.adminKey}` };
    const answer = await new Browser(harness.url).send('PATCH', `/admin/v1/accounts/${id}`, { suspended: true, is_admin: true }, admin);
    expect(answer.status).toBe(500);
    const row = await harness.app.database.selectFrom('accounts').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
    const keys = await harness.app.database.selectFrom('api_keys').select('revoked_at').where('account_id', '=', id).execute();
    expect({ ...row, keys }).toMatchObject({ suspended_at: null, admin_since: null, keys: [{ revoked_at: null }] });
  } finally {
    await harness.close();
  }
});

function withOneTableMore(options: ReturnType<typeof authOptions>) {
  const plugin = { id: 'more', schema: { more: { modelName: 'authMore', fields: { text: { type: 'string' as const } } } } };
  return { ...options, plugins: [plugin] };
}

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

const consoleDefaults = { publicOrigin: null, authSecret: null, requireEmailVerification: false, mail: null, adminKey: null };

async function mailTo(harness: Harness, email: string): Promise<{ link: string }> {
  const find = (): { link: string } | undefined =>
    harness.log
      .map((line) => JSON.parse(line) as { msg: string; to?: string; link: string })
      .findLast((line) => line.msg === 'mail' && line.to === email);
  await harness.until(() => find() !== undefined);
  return find() ?? { link: '' };
}
