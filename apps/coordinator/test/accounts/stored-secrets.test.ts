/** A reader of the database gains no access: stored secrets cannot be used to sign in. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterEach, expect, it } from 'vitest';
import { hashedSignInTokens } from '../../src/database/migrations/0045-hashed-sign-in-tokens.js';
import type { Database } from '../../src/database/tables.js';
import { Browser, PASSWORD } from '../support/console-client.js';
import { describeDatabases, startHarnessOn } from '../support/databases.js';
import { type Harness, NO_RATE_LIMITS } from '../support/harness.js';

describeDatabases('issued secrets', (fresh, dialect) => {
  let harness: Harness;
  afterEach(() => harness.close());

  async function start(): Promise<void> {
    harness = await startHarnessOn(fresh, { config: { rateLimits: NO_RATE_LIMITS }, linkPollMs: 0 });
  }

  /** Token of a browser's session. */
  const sessionToken = (browser: Browser): string =>
    decodeURIComponent([...browser.cookies].find(([name]) => name.endsWith('session_token'))?.[1] ?? '').split('.')[0] ?? '';

  async function resetToken(person: Browser, email: string): Promise<string> {
    await person.post('/console/auth/request-password-reset', { email });
    const link = (): string =>
      harness.log
        .map((line) => JSON.parse(line) as { kind?: string; to?: string; link: string })
        .findLast(({ kind, to }) => kind === 'reset_password' && to === email)?.link ?? '';
    await harness.until(() => link() !== '');
    return /reset-password\/([^?]+)/.exec(link())?.[1] ?? '';
  }

  it('appear in no table and in no page of the database file', async () => {
    await start();
    const person = new Browser(harness.url);
    expect((await person.signUp('ada@example.com')).status).toBe(200);
    const first = sessionToken(person);
    const again = new Browser(harness.url);
    expect((await again.signIn('ada@example.com')).status).toBe(200);
    const reset = await resetToken(person, 'ada@example.com');
    const { secret: apiKey } = await person.newKey();
    const { secret: playgroundKey } = (await (await person.post('/console/v1/playground-key')).json()) as { secret: string };
    const form = (path: string, fields: Record<string, string>): Promise<Response> =>
      fetch(harness.url + path, { method: 'POST', body: new URLSearchParams({ client_id: 'inference-provider', ...fields }) });
    const authorization = await form('/oauth/device_authorization', { machine_name: 'Attic Mac' });
    const { device_code, user_code } = (await authorization.json()) as { device_code: string; user_code: string };
    expect((await person.post(`/console/v1/device-codes/${user_code}/approve`)).status).toBe(200);
    const grant = { grant_type: 'urn:ietf:params:oauth:grant-type:device_code', device_code };
    const { access_token } = (await (await form('/oauth/token', grant)).json()) as { access_token: string };

    const secrets = { first, second: sessionToken(again), reset, apiKey, playgroundKey, device_code, access_token, PASSWORD };
    const dump = await everything(harness.app.database);
    for (const [name, secret] of Object.entries(secrets)) {
      expect(secret?.length, name).toBeGreaterThan(20);
      expect(dump, name).not.toContain(secret);
      if (dialect === 'sqlite') for (const bytes of databaseFiles()) expect(bytes.includes(secret), name).toBe(false);
    }
    // The dump does contain the hashes, so the search covers their tables.
    for (const secret of [first, apiKey, device_code, access_token]) expect(dump).toContain(sha256(secret));
    expect(dump).toContain(createHash('sha256').update(`reset-password:${reset}`).digest('base64url'));

    // The stored hashes themselves are rejected as credentials.
    const thief = new Browser(harness.url);
    const [name = '', value = ''] = [...person.cookies].find(([one]) => one.endsWith('session_token')) ?? [];
    thief.cookies.set(name, value.replace(first, sha256(first)));
    expect((await thief.get('/console/v1/me')).status).toBe(401);
    const stored = await sql<{ identifier: string }>`select identifier from auth_verifications`.execute(harness.app.database);
    for (const { identifier } of stored.rows) {
      expect((await thief.post('/console/auth/reset-password', { token: identifier, newPassword: 'another long password' })).status).toBe(
        400,
      );
    }
    expect((await thief.post('/console/auth/reset-password', { token: reset, newPassword: 'another long password' })).status).toBe(200);
    expect((await person.get('/console/v1/me')).status).toBe(401);
  });

  it('stored in clear by an older version are hashed in place: sessions and links stay valid', async () => {
    await start();
    const { database } = harness.app;
    const person = new Browser(harness.url);
    await person.signUp('ada@example.com');
    const other = new Browser(harness.url);
    await other.signIn('ada@example.com');
    const reset = await resetToken(person, 'ada@example.com');
    for (const token of [sessionToken(person), sessionToken(other)]) {
      await sql`update auth_sessions set token = ${token} where token = ${sha256(token)}`.execute(database);
    }
    await sql`update auth_verifications set identifier = ${`reset-password:${reset}`}`.execute(database);
    expect((await person.get('/console/v1/me')).status).toBe(401);

    await hashedSignInTokens.up(database);
    expect((await other.get('/console/v1/me')).status).toBe(200);
    const dump = await everything(database);
    for (const secret of [sessionToken(other), reset]) expect(dump).not.toContain(secret);
    const answer = await new Browser(harness.url).post('/console/auth/reset-password', {
      token: reset,
      newPassword: 'another long password',
    });
    expect(answer.status).toBe(200);
  });

  function databaseFiles(): Buffer[] {
    const file = join(harness.dataDir, 'coordinator', 'coordinator.db');
    return [file, `${file}-wal`].map((path) => readFileSync(path));
  }
});

/** All rows of all tables, as text. */
async function everything(database: Database): Promise<string> {
  const tables = await database.introspection.getTables();
  expect(tables.length).toBeGreaterThan(30);
  const rows: unknown[] = [];
  for (const { name } of tables) rows.push(name, (await sql`select * from ${sql.table(name)}`.execute(database)).rows);
  return JSON.stringify(rows);
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
