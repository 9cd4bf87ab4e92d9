/** Account export and deletion: all personal data is in the export, and none of it remains after the deletion. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ProviderId } from '@inference/protocol';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { readConfig } from '../../../src/config/config.js';
import { checkLedger } from '../../../src/database/ledger/check-ledger.js';
import { applyRetention } from '../../../src/database/privacy/retention.js';
import { STORED_DATA } from '../../../src/database/privacy/stored-data.js';
import { columnsOf } from '../../../src/database/privacy/stored-table.js';
import type { Database } from '../../../src/database/tables.js';
import { Browser, PASSWORD } from '../../support/console-client.js';
import { describeDatabases, startHarnessOn } from '../../support/databases.js';
import { errorOf, type Harness, NO_RATE_LIMITS } from '../../support/harness.js';
import { canary, contentOfTables, identityColumns, plantAccount, tablesWith } from '../../support/planted-account.js';
import { settledJob } from '../../support/settled-job.js';

interface Export {
  readonly account_id: string;
  readonly tables: Readonly<Record<string, { readonly rows: readonly Record<string, unknown>[] }>>;
  readonly not_included: Readonly<Record<string, string>>;
}

interface Person {
  readonly browser: Browser;
  readonly id: string;
  readonly email: string;
}

const DAY_MS = 86_400_000;

describeDatabases('the data of an account', (fresh, dialect) => {
  let harness: Harness;
  let database: Database;
  let people = 0;

  beforeAll(async () => {
    harness = await startHarnessOn(fresh, { config: { rateLimits: NO_RATE_LIMITS } });
    ({ database } = harness.app);
  });
  afterAll(async () => {
    expect((await checkLedger(database)).problems).toEqual([]);
    await harness.close();
  });

  const databaseFiles = (): string[] => {
    const file = join(harness.dataDir, 'coordinator', 'coordinator.db');
    return [file, `${file}-wal`];
  };
  const signUp = async (isConfirmed = true): Promise<Person> => {
    const browser = new Browser(harness.url);
    const email = `canary-address-${++people}@example.com`;
    expect((await browser.signUp(email)).status).toBe(200);
    const { id } = (await (await browser.get('/console/v1/me')).json()) as { id: string };
    if (isConfirmed) await sql`update auth_users set email_verified = true where id = ${id}`.execute(database);
    return { browser, id, email };
  };
  const ask = (browser: Browser, password = PASSWORD, accountId?: string): Promise<Response> =>
    browser.send('POST', '/console/v1/account/export', { password }, accountId === undefined ? {} : { 'x-account-id': accountId });
  const download = async (browser: Browser, accountId?: string): Promise<Export> => {
    const asked = await ask(browser, PASSWORD, accountId);
    expect(asked.status).toBe(201);
    const { path } = (await asked.json()) as { path: string };
    const answer = await browser.get(path);
    expect([answer.status, answer.headers.get('content-disposition')]).toEqual([200, 'attachment; filename="account-data.json"']);
    return (await answer.json()) as Export;
  };
  const asOperator = (method: string, path: string): Promise<Response> =>
    fetch(harness.url + path, { method, headers: { authorization: `Bearer ${harness.adminKey}` } });
  const createOrganisation = async (owner: Person, name: string): Promise<string> => {
    const { id } = (await (await owner.browser.post('/console/v1/organisations', { name })).json()) as { id: string };
    return id;
  };

  it('is complete in the export, and erased after the deletion except for the books', async () => {
    const person = await signUp();
    const colleague = await signUp();
    const organisationId = await createOrganisation(colleague, 'Others');
    expect((await person.browser.post('/console/v1/deposits/development', { amount_micro_usd: 1_000_000 })).status).toBe(201);
    const { secret, id: keyId } = await person.browser.newKey();
    const provider = await harness.provider({ models: ['canary/model'] });
    await harness.app.ledger.linkProvider(provider.providerId, person.id, Date.now());
    const answer = await harness.chat({ model: 'canary/model' }, { headers: { authorization: `Bearer ${secret}` } });
    expect(answer.status).toBe(200);
    const now = Date.now();
    // The rows are planted for a machine that is not connected, because the coordinator overwrites rows of connected machines.
    await harness.app.ledger.linkProvider('machine-canary' as ProviderId, person.id, now);
    await plantAccount(database, { accountId: person.id, keyId, providerId: 'machine-canary', organisationId, now });
    expect(await tablesWith(database, person.email)).toEqual(
      expect.arrayContaining(['auth_users', 'organisation_events', 'organisation_invitations']),
    );

    // Actions of the person on others. The export has the actions, without the subject and details that identify the others.
    await database
      .insertInto('operator_actions')
      .values({
        ...{ id: 'of others', at: now, operator: `account:${person.id}`, action: 'PATCH /admin/v1/accounts/:id', outcome: 'done' },
        ...{ subject: colleague.id, details: JSON.stringify({ reason: colleague.email }) },
      })
      .execute();
    await sql`insert into organisation_events (id, organisation_id, at, actor_id, action, subject)
      values ('of others', ${organisationId}, ${now}, ${person.id}, 'member.removed', ${colleague.email})`.execute(database);
    const text = JSON.stringify(await download(person.browser));
    const missing = identityColumns().filter(([table, column]) => !text.includes(canary(table, column)));
    // These columns have the e-mail address of the account instead of a canary value.
    expect(missing).toEqual([
      ['auth_users', 'email'],
      ['organisation_invitations', 'email'],
      ['organisation_events', 'subject'],
    ]);
    const data = JSON.parse(text) as Export;
    for (const table of ['auth_users', 'organisation_invitations', 'organisation_events']) {
      expect([table, JSON.stringify(data.tables[table]).includes(person.email)]).toEqual([table, true]);
    }
    for (const [table, members] of [
      ['operator_actions', { subject: null, details: null }],
      ['organisation_events', { subject: null }],
    ] as const) {
      expect(data.tables[table]?.rows).toContainEqual(expect.objectContaining({ id: 'of others', ...members }));
    }
    expect(data.tables.jobs?.rows).toMatchObject([{ account_id: person.id, model: 'canary/model', ended_at: expect.stringMatching(/Z$/) }]);
    expect(data.tables.receipts?.rows.map(({ job_id }) => job_id)).toContain(data.tables.jobs?.rows[0]?.job_id);
    expect(data.tables.deposits?.rows).toMatchObject([{ amount: 1_000_000 }]);
    // The export has no columns with secrets or about others.
    for (const [name, { rows }] of Object.entries(data.tables)) {
      const table = STORED_DATA.get(name);
      if (table === undefined) throw new Error(`${name} is not in the inventory`);
      for (const column of [...columnsOf(table, 'secret'), ...columnsOf(table, 'others')]) {
        for (const row of rows) expect([name, Object.keys(row)]).not.toEqual([name, expect.arrayContaining([column])]);
      }
    }
    expect(text).not.toContain(colleague.email);

    expect((await person.browser.post('/console/auth/delete-user', { password: PASSWORD })).status).toBe(200);
    const untilReport = ['device_enrolments', 'device_evidence'];
    const leftovers = [...(await contentOfTables(database))].filter(([, rows]) => rows.includes('canary ') || rows.includes(person.email));
    expect(leftovers.map(([name]) => name).sort()).toEqual(untilReport);
    // Accounting rows and the operators' log keep the random account id.
    expect(await tablesWith(database, person.id)).toEqual(
      expect.arrayContaining(['accounts', 'jobs', 'postings', 'balances', 'deposits', 'operator_actions']),
    );
    expect(await tablesWith(database, person.id)).not.toEqual(expect.arrayContaining(['receipts']));
    expect((await contentOfTables(database)).get('operator_actions')).toContain('[erased]');
    expect((await person.browser.get('/console/v1/me')).status).toBe(401);

    // The next retention run deletes rows that were queued during the deletion. Device evidence is deleted after its retention period.
    await database
      .insertInto('failed_requests')
      .values({
        ...{ job_id: 'queued', account_id: person.id, api_key_id: keyId, model: null, endpoint: '/', provider_id: null },
        ...{ is_sealed: 0, code: 'internal', latency_ms: 1, failed_at: now },
      })
      .execute();
    const { retention } = readConfig({});
    await applyRetention(database, retention, now + DAY_MS);
    expect(await tablesWith(database, '"queued"')).toEqual([]);
    expect(await tablesWith(database, 'canary ')).toEqual(untilReport);
    await applyRetention(database, retention, now + 31 * DAY_MS);
    expect(await tablesWith(database, 'canary ')).toEqual([]);
    // The data is also gone from free pages of the SQLite file and from its write-ahead log.
    for (const file of dialect === 'sqlite' ? databaseFiles() : []) {
      for (const text of ['canary ', person.email]) expect([file, readFileSync(file).includes(text)]).toEqual([file, false]);
    }
  });

  it('has nothing of an address that the person did not confirm', async () => {
    const stranger = await signUp(false);
    const organisationId = await createOrganisation(await signUp(), 'Elsewhere');
    await sql`insert into organisation_invitations (id, organisation_id, email, role, token_hash, invited_by, sent_at, sent_count, expires_at)
      values ('to another', ${organisationId}, ${stranger.email}, 'viewer', 'another hash', 'somebody', 1, 1, ${Date.now()})`.execute(
      database,
    );
    await sql`insert into organisation_events (id, organisation_id, at, actor_id, action, subject)
      values ('about another', ${organisationId}, 1, 'somebody', 'member.invited', ${stranger.email})`.execute(database);
    const { tables } = await download(stranger.browser);
    expect(tables.organisation_invitations?.rows).toEqual([]);
    expect((await stranger.browser.post('/console/auth/delete-user', { password: PASSWORD })).status).toBe(200);
    expect((await tablesWith(database, stranger.email)).sort()).toEqual(['organisation_events', 'organisation_invitations']);
  });

  it('is refused as too many requests while the check of the password waits too long', async () => {
    const person = await signUp();
    const { timeout } = AbortSignal;
    const late = AbortSignal.abort(new DOMException('late', 'TimeoutError'));
    const timeouts = vi.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => (ms === 30_000 ? late : timeout(ms)));
    const refused = await ask(person.browser);
    timeouts.mockRestore();
    expect([refused.status, await errorOf(refused)]).toMatchObject([429, { code: 'rate_limit_exceeded' }]);
    expect((await ask(person.browser)).status).toBe(201);
  });

  it('is downloaded only after the password, in the session that asked, page by page', async () => {
    const person = await signUp();
    const other = new Browser(harness.url);
    await other.signIn(person.email);
    expect((await ask(person.browser, 'wrong password!')).status).toBe(400);
    expect((await person.browser.get('/console/v1/account/export')).status).toBe(400);
    const { path } = (await (await ask(person.browser)).json()) as { path: string };
    expect(await errorOf(await other.get(path))).toMatchObject({ param: 'grant' });
    expect((await fetch(harness.url + path)).status).toBe(401);
    expect((await person.browser.get(path.replace(/grant=\d/, 'grant=9'))).status).toBe(400);
    expect((await person.browser.get(`${path}&account_id=${other.origin}`)).status).toBe(403);

    // More rows than one page of the export, many with equal times.
    const times = Array.from({ length: 250 }, (_, index) => Math.floor(index / 60));
    const jobs = times.map((time) => settledJob({ account_id: person.id, reserved_at: time, cost: 0, earned: 0, fee: 0, amount: 0 }));
    for (let start = 0; start < jobs.length; start += 250) {
      await database
        .insertInto('jobs')
        .values(jobs.slice(start, start + 250))
        .execute();
    }
    const { tables } = await download(person.browser);
    expect(tables.jobs?.rows.map(({ job_id }) => job_id).sort()).toEqual(jobs.map(({ job_id }) => job_id).sort());
    await database.deleteFrom('jobs').where('account_id', '=', person.id).execute();
    for (let count = 0; count < 9; count++) expect((await person.browser.get(path)).status).toBe(200);
    expect((await person.browser.get(path)).status).toBe(429);
  });

  it('of an organisation is for its owners; its log is exported safely as CSV', async () => {
    const owner = await signUp();
    const id = await createOrganisation(owner, '=HYPERLINK("https://example.com")');
    const data = await download(owner.browser, id);
    expect(data.account_id).toBe(id);
    expect(data.tables.organisation_members?.rows).toMatchObject([{ user_id: owner.id, role: 'owner', member_email: owner.email }]);
    expect(JSON.stringify(data.tables.organisation_events)).toContain('HYPERLINK');

    const log = (query: string): Promise<Response> => owner.browser.get(`/console/v1/organisation/log/export?account_id=${id}${query}`);
    const csv = await (await log('&format=csv')).text();
    expect(csv.split('\r\n')[0]).toBe('at,actor_id,actor_name,actor_email,action,subject,role,id');
    expect(csv).toContain(`"'=HYPERLINK(""https://example.com"")"`);
    const [line = ''] = (await (await log('')).text()).split('\n');
    expect(JSON.parse(line)).toMatchObject({ action: 'organisation.created', actor: { email: owner.email } });
    expect(await (await log('&to=2001-01-31')).text()).toBe('');
    expect(await errorOf(await log('&format=xml'))).toMatchObject({ param: 'format' });
    expect(await errorOf(await log('&from=2026-02-30'))).toMatchObject({ param: 'from' });
  });

  it('is exported and deleted by operators, who leave a trace in the audit log', async () => {
    const person = await signUp();
    const organisationId = await createOrganisation(person, 'canary organisation');
    const path = `/admin/v1/accounts/${person.id}`;
    const data = (await (await asOperator('GET', `${path}/export`)).json()) as Export;
    expect(JSON.stringify(data)).toContain(person.email);
    expect((await asOperator('GET', '/admin/v1/accounts/nobody/export')).status).toBe(404);
    expect(await errorOf(await asOperator('DELETE', path))).toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('only owner'),
    });
    expect((await asOperator('DELETE', `/admin/v1/accounts/${organisationId}`)).status).toBe(200);
    expect(await tablesWith(database, 'canary organisation')).toEqual([]);
    expect(await (await asOperator('DELETE', path)).json()).toMatchObject({
      id: person.id,
      name: '',
      email: null,
      deleted_at: expect.any(String),
    });
    expect((await asOperator('DELETE', path)).status).toBe(409);
    expect(await tablesWith(database, person.email)).toEqual([]);
    expect((await person.browser.get('/console/v1/me')).status).toBe(401);

    const exported = await (await asOperator('GET', `/admin/v1/actions/export?format=csv&from=2020-01-01`)).text();
    for (const action of ['GET /admin/v1/accounts/:id/export', 'DELETE /admin/v1/accounts/:id']) {
      expect(exported).toMatch(new RegExp(`,${action.replaceAll('/', '\\/')},${person.id},done,`));
    }
    expect(exported.split('\r\n').length).toBeGreaterThan(4);
    const lines = (await (await asOperator('GET', `/admin/v1/actions/export?subject=${person.id}`)).text()).trim().split('\n');
    expect(lines.map((one) => (JSON.parse(one) as { outcome: string }).outcome)).toEqual(['conflict', 'done', 'conflict', 'done']);
    // The export itself is recorded.
    expect(await (await asOperator('GET', '/admin/v1/actions?limit=1')).text()).toContain('GET /admin/v1/actions/export');
  });
});
