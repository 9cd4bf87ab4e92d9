/**
 * Linking of a provider to its owner: the device grant in front of a console, the token over the provider's socket, and every
 * failure.
 */
import { type ConsoleDeviceCode, ConsoleDeviceCodeSchema } from '@inference/formats';
import { type MachineEarnings, MachineEarningsSchema } from '@inference/protocol';
import type { Kysely } from 'kysely';
import { Compile } from 'typebox/compile';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ProviderLinks } from '../../../src/accounts/provider-links.js';
import { checkLedger } from '../../../src/database/ledger/check-ledger.js';
import { foldJobs } from '../../../src/database/ledger/fold-jobs.js';
import { machineLinks } from '../../../src/database/migrations/0034-machine-links.js';
import { AttemptLimit } from '../../../src/routes/plugins/attempt-limit.js';
import { Browser, PASSWORD } from '../../support/console-client.js';
import { describeDatabases, startHarnessOn } from '../../support/databases.js';
import { errorOf, type Harness, NO_RATE_LIMITS, startHarness } from '../../support/harness.js';
import { untilDayLasts } from '../../support/midnight.js';
import type { ScriptedProvider } from '../../support/scripted-provider.js';

const GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
const CLIENT = { client_id: 'inference-provider' };

interface Started {
  readonly device_code: string;
  readonly user_code: string;
  readonly verification_uri_complete: string;
  readonly interval: number;
}

describeDatabases('linking a provider to an account', (fresh) => {
  let harness: Harness;
  let people = 0;
  beforeAll(async () => {
    harness = await startHarnessOn(fresh, { config: { rateLimits: NO_RATE_LIMITS } });
  });
  afterAll(() => harness.close());

  const form = (path: string, fields: Record<string, string>): Promise<Response> =>
    fetch(harness.url + path, { method: 'POST', body: new URLSearchParams(fields) });
  const start = async (fields: Record<string, string> = {}): Promise<Started> => {
    const answer = await form('/oauth/device_authorization', { ...CLIENT, machine_name: 'Attic Mac', chip_name: 'M9', ...fields });
    expect(answer.status).toBe(200);
    return (await answer.json()) as Started;
  };
  const poll = async (started: Started): Promise<Record<string, unknown>> => {
    const answer = await form('/oauth/token', { ...CLIENT, grant_type: GRANT, device_code: started.device_code });
    expect(answer.headers.get('cache-control')).toBe('no-store');
    const body = (await answer.json()) as Record<string, unknown>;
    expect(answer.status).toBe(body.access_token === undefined ? 400 : 200);
    return body;
  };
  /** Makes a code `ms` older, as if that time had passed. */
  const wait = async ({ user_code }: Started, ms: number): Promise<void> => {
    await harness.app.database
      .updateTable('device_codes')
      .set((set) => ({ expires_at: set('expires_at', '-', ms), polled_at: set('polled_at', '-', ms) }))
      .where('user_code', '=', user_code.replace('-', ''))
      .execute();
  };
  const newPerson = async (name = 'Ada'): Promise<Browser> => {
    const browser = new Browser(harness.url);
    expect((await browser.signUp(`linker-${++people}@example.com`, PASSWORD, name)).status).toBe(200);
    return browser;
  };
  const idOf = async (person: Browser): Promise<string> => ((await (await person.get('/console/v1/me')).json()) as { id: string }).id;
  const decide = (person: Browser, code: string, how: 'approve' | 'deny'): Promise<Response> =>
    person.post(`/console/v1/device-codes/${code}/${how}`);
  /** Returns a machine token that this person has approved. */
  const tokenFor = async (person: Browser): Promise<string> => {
    const started = await start();
    expect((await decide(person, started.user_code, 'approve')).status).toBe(200);
    return String((await poll(started)).access_token);
  };
  /** Sends a machine token over the provider's socket and returns the coordinator's reply. */
  const show = async (provider: ScriptedProvider, token: string): Promise<Record<string, unknown>> => {
    const before = linkWords(provider).length;
    provider.send({ type: 'link', token });
    await harness.until(() => linkWords(provider).length > before);
    return linkWords(provider)[before] as Record<string, unknown>;
  };
  const machinesOf = async (person: Browser): Promise<string[]> =>
    ((await (await person.get('/console/v1/machines')).json()) as { data: { provider_id: string }[] }).data.map((one) => one.provider_id);
  /** The provider serves one job of another customer. */
  const earn = async (provider: ScriptedProvider): Promise<void> => {
    const customer = await harness.customer(1_000_000);
    const headers = { authorization: `Bearer ${customer.apiKey}` };
    expect((await harness.chat({ model: provider.options.models?.[0] }, { headers })).status).toBe(200);
    // The response may arrive before the settlement.
    await harness.until(async () => {
      const { balance, reserved } = await harness.money(customer.accountId);
      return balance < 1_000_000 && reserved === 0;
    });
  };
  const earned = async (account: string): Promise<number> => (await harness.money(account)).balance;

  it('publishes metadata (RFC 8414)', async () => {
    const answer = await harness.get('/.well-known/oauth-authorization-server', null);
    expect(await answer.json()).toMatchObject({
      issuer: harness.url,
      device_authorization_endpoint: `${harness.url}/oauth/device_authorization`,
      token_endpoint: `${harness.url}/oauth/token`,
      revocation_endpoint: `${harness.url}/oauth/revoke`,
      grant_types_supported: [GRANT],
    });
  });

  it('goes from a code to a linked provider without exposing secrets', async () => {
    const owner = await newPerson('Grace');
    const started = await start();
    expect(started).toMatchObject({ interval: 5, expires_in: 600, verification_uri: `${harness.url}/link` });
    expect(started.user_code).toMatch(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/);
    expect(started.verification_uri_complete).toBe(`${harness.url}/link?code=${started.user_code}`);
    expect(await poll(started)).toMatchObject({ error: 'authorization_pending' });

    const typed = started.user_code.toLowerCase().replace('-', ' ');
    const seen = (await (await owner.get(`/console/v1/device-codes/${encodeURIComponent(typed)}`)).json()) as ConsoleDeviceCode;
    expect([...Compile(ConsoleDeviceCodeSchema).Errors(seen)]).toEqual([]);
    expect(seen).toMatchObject({ user_code: started.user_code, machine_name: 'Attic Mac', chip_name: 'M9', state: 'waiting' });
    expect(seen.address).toMatch(/127\.0\.0\.1|::1/);
    expect(await (await decide(owner, started.user_code, 'approve')).json()).toMatchObject({ state: 'approved' });
    await wait(started, 5000);
    const granted = await poll(started);
    expect(granted).toMatchObject({ token_type: 'Bearer', access_token: expect.stringMatching(/^machine-[\w-]{43}$/) });
    const token = String(granted.access_token);

    const provider = await harness.provider({ models: ['only/link'] });
    expect(await show(provider, token)).toMatchObject({ type: 'linked', account_id: await idOf(owner), account_name: 'Grace' });
    expect(await machinesOf(owner)).toEqual([provider.providerId]);
    const everything = `${harness.log.join('\n')}${JSON.stringify(await harness.app.database.selectFrom('machine_tokens').selectAll().execute())}`;
    for (const secret of [token, started.device_code, started.user_code]) expect(everything).not.toContain(secret);
  });

  it('accepts a code once, and revokes the token when the code is sent again', async () => {
    const owner = await newPerson();
    const started = await start();
    await decide(owner, started.user_code, 'approve');
    const answers = await Promise.all([poll(started), poll(started), poll(started)]);
    const tokens = answers.flatMap((answer) => (answer.access_token === undefined ? [] : [String(answer.access_token)]));
    expect(tokens).toHaveLength(1);
    await wait(started, 60_000);
    expect(await poll(started)).toMatchObject({ error: 'invalid_grant' });
    const provider = await harness.provider();
    expect(await show(provider, tokens[0] ?? '')).toMatchObject({ type: 'link_refused', reason: 'token_revoked' });
    expect(await machinesOf(owner)).toEqual([]);
  });

  it('slows down clients that poll too often, by five seconds each time', async () => {
    const started = await start();
    expect(await poll(started)).toMatchObject({ error: 'authorization_pending' });
    expect(await poll(started)).toMatchObject({ error: 'slow_down' });
    await wait(started, 5000);
    expect(await poll(started)).toMatchObject({ error: 'slow_down' });
    await wait(started, 10_000);
    expect(await poll(started)).toMatchObject({ error: 'slow_down' });
    await wait(started, 20_000);
    expect(await poll(started)).toMatchObject({ error: 'authorization_pending' });
    // A client that polls too fast gets no token, not even after the owner's approval.
    const owner = await newPerson();
    await decide(owner, started.user_code, 'approve');
    const flood = await Promise.all(Array.from({ length: 60 }, () => poll(started)));
    expect(new Set(flood.map((answer) => answer.error))).toEqual(new Set(['slow_down']));
  });

  it('is unaffected by a clock that is set back', async () => {
    const started = await start();
    expect(await poll(started)).toMatchObject({ error: 'authorization_pending' });
    await wait(started, -120_000);
    expect(await poll(started)).toMatchObject({ error: 'authorization_pending' });
  });

  it('ends when the owner denies it or the code expires', async () => {
    const owner = await newPerson();
    const refused = await start();
    expect(await (await decide(owner, refused.user_code, 'deny')).json()).toMatchObject({ state: 'denied' });
    expect(await poll(refused)).toMatchObject({ error: 'access_denied' });
    expect((await decide(owner, refused.user_code, 'approve')).status).toBe(409);

    const late = await start();
    await wait(late, 10 * 60_000);
    expect(await poll(late)).toMatchObject({ error: 'expired_token' });
    expect((await decide(owner, late.user_code, 'approve')).status).toBe(409);
    expect(await (await owner.get(`/console/v1/device-codes/${late.user_code}`)).json()).toMatchObject({ state: 'expired' });
    await wait(late, 10 * 60_000 + 1);
    await start();
    expect(await poll(late)).toMatchObject({ error: 'invalid_grant' });
  });

  it('is decided once of two concurrent decisions, and looks unknown to the other account', async () => {
    const [one, two] = [await newPerson(), await newPerson()];
    const started = await start();
    const answers = await Promise.all([one, two, one, two].map((person) => decide(person, started.user_code, 'approve')));
    const statuses = answers.map((answer) => answer.status);
    expect([
      [200, 404, 200, 404],
      [404, 200, 404, 200],
    ]).toContainEqual(statuses);
    const loser = statuses[0] === 200 ? two : one;
    const unknown = await errorOf(await loser.get('/console/v1/device-codes/BBBB-BBBB'));
    expect(await errorOf(await loser.get(`/console/v1/device-codes/${started.user_code}`))).toEqual(unknown);
    expect(await errorOf(await decide(loser, 'not a code at all', 'deny'))).toEqual(unknown);
    const provider = await harness.provider();
    await show(provider, String((await poll(started)).access_token));
    expect([await machinesOf(one), await machinesOf(two)].flat()).toEqual([provider.providerId]);
    expect(await machinesOf(loser)).toEqual([]);
  });

  it('requires a session and our own origin for a decision', async () => {
    const owner = await newPerson();
    const { user_code } = await start();
    expect((await decide(new Browser(harness.url), user_code, 'approve')).status).toBe(401);
    const foreign = new Browser(harness.url);
    for (const [name, value] of owner.cookies) foreign.cookies.set(name, value);
    foreign.origin = 'https://evil.example';
    expect((await decide(foreign, user_code, 'approve')).status).toBe(403);
    expect((await owner.send('POST', `/console/v1/device-codes/${user_code}/approve`, undefined)).status).toBe(415);
    expect(await (await owner.get(`/console/v1/device-codes/${user_code}`)).json()).toMatchObject({ state: 'waiting' });
  });

  it('reports invalid requests in the OAuth format', async () => {
    const device_code = 'x'.repeat(43);
    const cases: [string, Record<string, string>, string][] = [
      ['/oauth/device_authorization', {}, 'invalid_request'],
      ['/oauth/device_authorization', { client_id: 'another' }, 'invalid_client'],
      ['/oauth/token', { ...CLIENT, device_code }, 'invalid_request'],
      ['/oauth/token', { ...CLIENT, grant_type: 'password', device_code }, 'unsupported_grant_type'],
      ['/oauth/token', { ...CLIENT, grant_type: GRANT }, 'invalid_request'],
      ['/oauth/token', { ...CLIENT, grant_type: GRANT, device_code: '' }, 'invalid_request'],
      ['/oauth/token', { grant_type: GRANT, device_code }, 'invalid_request'],
      ['/oauth/token', { ...CLIENT, grant_type: GRANT, device_code }, 'invalid_grant'],
      ['/oauth/revoke', { ...CLIENT }, 'invalid_request'],
    ];
    for (const [path, fields, error] of cases) {
      const answer = await form(path, fields);
      expect([path, fields, answer.status]).toEqual([path, fields, 400]);
      expect(await answer.json()).toEqual({ error, error_description: expect.any(String) });
    }
    const twice = await fetch(`${harness.url}/oauth/token`, { method: 'POST', body: new URLSearchParams('client_id=a&client_id=b') });
    expect([twice.status, await twice.json()]).toMatchObject([400, { error: 'invalid_request' }]);
    const json = await harness.post('/oauth/token', { ...CLIENT, grant_type: GRANT, device_code });
    expect([json.status, await json.json()]).toMatchObject([400, { error: 'invalid_request' }]);
    const large = await form('/oauth/token', { ...CLIENT, grant_type: GRANT, device_code: 'x'.repeat(20_000) });
    expect([large.status, await large.json()]).toMatchObject([413, { error: 'invalid_request' }]);
  });

  it('sanitizes the names that a provider reports', async () => {
    const owner = await newPerson();
    const { user_code } = await start({ machine_name: '<b>\u001b[31mMac\u202e</b>', chip_name: '\u0007' });
    const seen = (await (await owner.get(`/console/v1/device-codes/${user_code}`)).json()) as ConsoleDeviceCode;
    expect([seen.machine_name, seen.chip_name]).toEqual(['b [31mMac /b', null]);
  });

  it('binds a token to the first provider that shows it', async () => {
    const token = await tokenFor(await newPerson());
    const [first, second] = [await harness.provider(), await harness.provider()];
    expect(await show(first, token)).toMatchObject({ type: 'linked' });
    expect(await show(first, token)).toMatchObject({ type: 'linked' });
    expect(await show(second, token)).toMatchObject({ type: 'link_refused', reason: 'other_machine' });
  });

  it('is refused while the provider is linked to another account', async () => {
    await untilDayLasts();
    const [one, two] = [await newPerson(), await newPerson()];
    const provider = await harness.provider({ models: ['only/moves'] });
    const [first, second] = [await tokenFor(one), await tokenFor(two)];
    expect(await show(provider, first)).toMatchObject({ type: 'linked' });
    expect(await show(provider, second)).toMatchObject({ type: 'link_refused', reason: 'other_account' });
    // The refused link did not change the owner.
    expect(await show(provider, first)).toMatchObject({ type: 'linked' });
    await earn(provider);
    expect((await form('/oauth/revoke', { ...CLIENT, token: first })).status).toBe(200);
    await harness.until(() => linkWords(provider).at(-1)?.type === 'link_refused');
    const ofOne = await earned(await idOf(one));
    expect(ofOne).toBeGreaterThan(0);
    // The next owner receives what the provider earned while it had no owner.
    await earn(provider);
    expect(await show(provider, second)).toMatchObject({ type: 'linked', account_id: await idOf(two) });
    await earn(provider);
    expect([await machinesOf(one), await machinesOf(two)]).toEqual([[], [provider.providerId]]);
    expect([await earned(await idOf(one)), await earned(await idOf(two))]).toEqual([ofOne, 2 * ofOne]);
    expect(await show(provider, first)).toMatchObject({ type: 'link_refused', reason: 'token_revoked' });
    const today = new Date().toISOString().slice(0, 10);
    const days = async (person: Browser): Promise<unknown> =>
      ((await (await person.get(`/console/v1/earnings/days?from=${today}&to=${today}`)).json()) as { data: unknown }).data;
    expect(await days(one)).toMatchObject([{ provider_id: provider.providerId, jobs: 1, earned_micro_usd: ofOne }]);
    expect(await days(two)).toMatchObject([{ provider_id: provider.providerId, jobs: 2, earned_micro_usd: 2 * ofOne }]);
    const { database: tables } = harness.app;
    expect((await checkLedger(tables)).problems).toEqual([]);
    const addToEach = (by: number) =>
      tables
        .updateTable('machine_quarters')
        .set((set) => ({ earned: set('earned', '+', by) }))
        .where('provider_id', '=', provider.providerId)
        .execute();
    await foldJobs(tables);
    await addToEach(1);
    expect((await checkLedger(tables)).problems.join()).toContain('a quarter of an hour of a machine differs from its jobs');
    await addToEach(-1);
  });

  it('never links one provider to two accounts that show their tokens at once', async () => {
    const [one, two] = [await newPerson(), await newPerson()];
    const tokens = [await tokenFor(one), await tokenFor(two)];
    const provider = await harness.provider();
    const links = new ProviderLinks({ database: harness.app.database, now: Date.now, onUnlink: () => {} });
    const answers = await Promise.all(tokens.map((token) => links.link(provider.providerId, token)));
    expect(answers.map((answer) => answer.kind).sort()).toEqual(['linked', 'refused']);
    expect([await machinesOf(one), await machinesOf(two)].flat()).toEqual([provider.providerId]);
  });

  it("reports the earnings of a provider to its owner, by days of the owner's time zone", async () => {
    await untilDayLasts();
    const owner = await newPerson('Grace');
    const token = await tokenFor(owner);
    const earnings = (of: string | null, query = ''): Promise<Response> => harness.get(`/v1/machine/earnings${query}`, of);
    const told = async (of: string, query = ''): Promise<MachineEarnings> => {
      const answer = await earnings(of, query);
      expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'no-store']);
      const body = (await answer.json()) as MachineEarnings;
      expect([...Compile(MachineEarningsSchema).Errors(body)]).toEqual([]);
      return body;
    };
    expect((await earnings(token)).status).toBe(409);
    const provider = await harness.provider({ models: ['only/earns', 'only/earns-too'] });
    await earn(provider);
    await show(provider, token);
    await earn(provider);
    const today = new Date().toISOString().slice(0, 10);
    const body = await told(token);
    const one = await earned(await idOf(owner));
    expect(body).toMatchObject({
      provider_id: provider.providerId,
      account_name: 'Grace',
      time_zone: 'UTC',
      to: today,
      data: [{ day: today, model: 'only/earns', requests: 2, earned_micro_usd: one }],
      account: { machines: 1, earned_total_micro_usd: one, withdrawable_micro_usd: one },
    });
    // UTC+14 and UTC−11 always differ in their date. Nepal (UTC+5:45) tests an offset that is no whole hour.
    const days = async (zone: string): Promise<string> => (await told(token, `?days=1&time_zone=${encodeURIComponent(zone)}`)).to;
    expect(await days('Pacific/Kiritimati')).not.toBe(await days('Pacific/Pago_Pago'));
    expect((await told(token, '?days=90&time_zone=Asia/Kathmandu')).data).toMatchObject([{ requests: 2 }]);
    for (const query of [
      '?days=0',
      '?days=91',
      '?days=x',
      '?days=0x10',
      '?days=1e1',
      '?days=7.0',
      '?time_zone=Nowhere/Land',
      `?time_zone=${'x'.repeat(100)}`,
    ]) {
      expect([query, (await earnings(token, query)).status]).toEqual([query, 400]);
    }
    for (const wrong of [null, harness.apiKey, `machine-${'A'.repeat(43)}`]) expect((await earnings(wrong)).status).toBe(401);
    // After a change of owner, the next owner does not see earlier earnings.
    await form('/oauth/revoke', { ...CLIENT, token });
    expect((await earnings(token)).status).toBe(401);
    const next = await tokenFor(await newPerson());
    await show(provider, next);
    expect((await told(next)).data).toEqual([]);
  });

  it('is put off and logged while the database fails', async () => {
    const token = await tokenFor(await newPerson());
    const provider = await harness.provider();
    const { schema } = harness.app.database;
    const failureCount = () => harness.log.filter((line) => line.includes('"database write failed"')).length;
    const before = failureCount();
    await schema.alterTable('machine_tokens').renameTo('machine_tokens_away').execute();
    const answer = await show(provider, token);
    await schema.alterTable('machine_tokens_away').renameTo('machine_tokens').execute();
    expect(answer).toMatchObject({ type: 'link_refused', reason: 'try_later' });
    expect(failureCount()).toBeGreaterThan(before);
    expect(await show(provider, token)).toMatchObject({ type: 'linked' });
  });

  it('ends at once when the owner removes the provider, whose earnings stay', async () => {
    const owner = await newPerson();
    const provider = await harness.provider({ models: ['only/gone'] });
    const token = await tokenFor(owner);
    await show(provider, token);
    await earn(provider);
    const before = await earned(await idOf(owner));
    const stranger = await newPerson();
    expect((await stranger.send('DELETE', `/console/v1/machines/${provider.providerId}`)).status).toBe(404);
    const answer = await owner.send('DELETE', `/console/v1/machines/${provider.providerId}`);
    expect(await answer.json()).toEqual({ provider_id: provider.providerId, unlinked: true });
    await harness.until(() => linkWords(provider).at(-1)?.reason === 'token_revoked');
    expect(await machinesOf(owner)).toEqual([]);
    expect(await show(provider, token)).toMatchObject({ type: 'link_refused', reason: 'token_revoked' });
    await earn(provider);
    expect(await earned(await idOf(owner))).toBe(before);
    expect((await owner.send('DELETE', `/console/v1/machines/${provider.providerId}`)).status).toBe(404);
  });

  it('is void while its account is suspended, and for good when the account is closed', async () => {
    const owner = await newPerson();
    const id = await idOf(owner);
    const token = await tokenFor(owner);
    const provider = await harness.provider();
    await show(provider, token);
    const admin = { authorization: `Bearer ${harness.adminKey}` };
    const suspend = async (suspended: boolean): Promise<void> => {
      expect((await new Browser(harness.url).send('PATCH', `/admin/v1/accounts/${id}`, { suspended }, admin)).status).toBe(200);
    };
    const { user_code, ...pending } = await start();
    await decide(owner, user_code, 'approve');
    await suspend(true);
    expect(await show(provider, token)).toMatchObject({ type: 'link_refused', reason: 'account_suspended' });
    for (let polls = 0; polls < 2; polls++) expect(await poll({ user_code, ...pending })).toMatchObject({ error: 'access_denied' });
    await suspend(false);
    expect(await poll({ user_code, ...pending })).toMatchObject({ error: 'access_denied' });
    expect(await (await owner.get(`/console/v1/device-codes/${user_code}`)).json()).toMatchObject({ state: 'denied' });
    expect(await show(provider, token)).toMatchObject({ type: 'linked' });
    expect((await owner.post('/console/auth/delete-user', { password: PASSWORD })).status).toBe(200);
    await harness.until(() => linkWords(provider).at(-1)?.reason === 'token_revoked');
    const next = await newPerson();
    expect(await show(provider, await tokenFor(next))).toMatchObject({ type: 'linked', account_id: await idOf(next) });
  });

  it('fills the summary table from earlier jobs', async () => {
    const { database: tables } = harness.app;
    const rows = () =>
      tables
        .selectFrom('machine_quarters')
        .selectAll()
        .orderBy('provider_id')
        .orderBy('quarter')
        .orderBy('model')
        .orderBy('earner')
        .execute();
    await foldJobs(tables);
    const before = await rows();
    expect(before.length).toBeGreaterThan(0);
    for (const table of ['machine_quarters', 'device_codes', 'machine_tokens', 'unclaimed_accounts']) {
      await tables.schema.dropTable(table).execute();
    }
    await tables.schema.createTable('auth_device_codes').addColumn('id', 'text').execute();
    await machineLinks.up(tables as unknown as Kysely<unknown>);
    expect(await rows()).toEqual(before);
  });

  it('responds the same to all invalid tokens', async () => {
    const provider = await harness.provider();
    for (const token of ['x'.repeat(16), `machine-${'A'.repeat(43)}`, harness.apiKey]) {
      expect(await show(provider, token)).toMatchObject({ type: 'link_refused', reason: 'token_revoked' });
      expect((await form('/oauth/revoke', { ...CLIENT, token })).status).toBe(200);
    }
  });
});

describe('an attempt limit', () => {
  it('forgets attempts after the window, and refunded attempts at once; no clock locks out for longer', () => {
    let now = 1_000_000;
    const limit = new AttemptLimit({ maxAttempts: 2, windowMs: 60_000, now: () => now, maxNames: 2 });
    expect([limit.count('a'), limit.count('a'), limit.count('a'), limit.count('b')]).toEqual([null, null, 60, null]);
    limit.refund('a');
    expect([limit.count('a'), limit.count('a')]).toEqual([null, 60]);
    now += 59_500;
    expect(limit.count('a')).toBe(1);
    now += 500;
    expect(limit.count('a')).toBeNull();
    now -= 900_000;
    expect([limit.count('a'), limit.count('a'), limit.count('a')]).toEqual([null, null, 60]);
    // Many different names must not fill memory, so the oldest counters are dropped.
    expect([limit.count('c'), limit.count('d'), limit.count('a')]).toEqual([null, null, null]);
  });
});

describe('code guessing', () => {
  it('is limited to ten concurrent attempts per account, and has a limit per address', async () => {
    const harness = await startHarness({ config: { rateLimits: NO_RATE_LIMITS, trustedProxies: ['127.0.0.1'] } });
    try {
      const answer = await fetch(`${harness.url}/oauth/device_authorization`, { method: 'POST', body: new URLSearchParams(CLIENT) });
      const { user_code } = (await answer.json()) as Started;
      const guesser = new Browser(harness.url);
      await guesser.signUp('guesser@example.com');
      const letters = 'BCDFGHJKLMNPQRSTVWXZ';
      const guesses = Array.from(
        { length: 100 },
        (_, index) => `BBBBB${letters[Math.floor(index / 400)]}${letters[Math.floor(index / 20) % 20]}${letters[index % 20]}`,
      );
      const statuses = await Promise.all(
        guesses.map(async (guess) => (await guesser.post(`/console/v1/device-codes/${guess}/approve`)).status),
      );
      expect(statuses.filter((status) => status === 404)).toHaveLength(10);
      expect(statuses.filter((status) => status === 429)).toHaveLength(90);
      // While the account is limited, even the right code is refused.
      const right = await guesser.post(`/console/v1/device-codes/${user_code}/approve`);
      expect([right.status, Number(right.headers.get('retry-after')) > 0]).toEqual([429, true]);
      // Another account at the same address is not blocked, until the address itself has made too many attempts.
      const owner = new Browser(harness.url);
      await owner.signUp('owner@example.com');
      expect((await owner.post(`/console/v1/device-codes/${user_code}/approve`)).status).toBe(200);
      let wrong = 10;
      for (let account = 0; wrong < 50; account++) {
        const another = new Browser(harness.url);
        await another.signUp(`another-${account}@example.com`);
        for (let tries = 0; tries < 10 && wrong < 50; tries++, wrong++) {
          expect((await another.get('/console/v1/device-codes/BBBB-BBBB')).status).toBe(404);
        }
      }
      const path = `/console/v1/device-codes/${user_code}`;
      // More than the limit of an account: the refusals do not count against the owner, whose other address is not blocked.
      for (let tries = 0; tries < 12; tries++) expect((await owner.get(path)).status).toBe(429);
      expect((await owner.send('GET', path, undefined, { 'x-forwarded-for': '198.51.100.7' })).status).toBe(200);
    } finally {
      await harness.close();
    }
  });
});

function linkWords(provider: ScriptedProvider): { type: string; reason?: string }[] {
  return provider.received.filter((message) => message.type === 'linked' || message.type === 'link_refused');
}
