/** Names that people choose and others see: in mail, on the operator's pages, in a provider's terminal. */
import { createServer } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { listenLocally } from '../../../../../test/support/local-server.js';
import { nameOfAccount } from '../../../src/database/accounts/account-repository.js';
import { Browser, PASSWORD } from '../../support/console-client.js';
import { errorOf, type Harness, NO_RATE_LIMITS, startHarness } from '../../support/harness.js';

const CONSOLE = { publicOrigin: null, authSecret: null, requireEmailVerification: true, adminKey: null };
const BAD_NAMES = [
  'Ada,\n\nyour account is locked: https://evil.example/unlock',
  'Ada\r\nBcc: everybody@example.com',
  'Ada\u2028https://evil.example',
  'Ada\u001b[2J',
  '\u202Eada',
  'Ada\u0000',
  'Ada\u007f',
];
const GOOD_NAMES = ['Ada & Ben <3', 'Zoë "Z" O’Neil', '👩‍💻 dev', 'علی‌رضا', ''];

let harness: Harness;
afterEach(() => harness.close());

describe('mail', () => {
  it('contains no text chosen by the person who triggered it', async () => {
    const mails: { to: string; subject: string; text: string; link: string }[] = [];
    const post = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        mails.push(JSON.parse(Buffer.concat(chunks).toString()));
        response.writeHead(204).end();
      });
    });
    const url = `${await listenLocally(post)}/send`;
    harness = await startHarness({
      config: { rateLimits: NO_RATE_LIMITS, console: { ...CONSOLE, mail: { kind: 'http', url, token: null } } },
    });
    const stranger = new Browser(harness.url);
    const signUp = (fields: Record<string, unknown>): Promise<Response> =>
      stranger.post('/console/auth/sign-up/email', { email: 'victim@example.com', password: PASSWORD, name: 'Ada', ...fields });
    for (const name of BAD_NAMES) {
      const answer = await signUp({ name });
      expect([answer.status, await errorOf(answer)], JSON.stringify(name)).toMatchObject([400, { param: 'name' }]);
    }
    const told = await signUp({ callbackURL: '/Your account is locked, see evil.example' });
    expect([told.status, await errorOf(told)]).toMatchObject([400, { param: 'callbackURL' }]);
    expect((await signUp({ callbackURL: 'https://evil.example/' })).status).toBe(403);
    expect(mails).toEqual([]);
    expect((await signUp({ name: 'Won a prize at https://evil.example', callbackURL: '/account' })).status).toBe(200);
    await harness.until(() => mails.length === 1);
    await stranger.post('/console/auth/request-password-reset', { email: 'victim@example.com', redirectTo: '/reset-password' });
    await harness.until(() => mails.length === 2);
    for (const mail of mails) {
      expect(JSON.stringify(mail)).not.toMatch(/evil|prize/);
      expect(mail.text.match(/https?:\/\/\S+/g)).toEqual([mail.link]);
      expect(mail.link.startsWith(`${harness.url}/console/auth/`)).toBe(true);
    }
    await new Promise((resolve) => void post.close(resolve));
  });
});

describe('names', () => {
  it('of people, keys and providers are single lines of plain characters', async () => {
    harness = await startHarness({ config: { rateLimits: NO_RATE_LIMITS } });
    const person = new Browser(harness.url);
    await person.signUp('ada@example.com');
    const { id } = await person.newKey();
    for (const name of BAD_NAMES) {
      for (const [method, path] of [
        ['POST', '/console/auth/update-user'],
        ['POST', '/console/v1/keys'],
        ['PATCH', `/console/v1/keys/${id}`],
        ['PATCH', `/console/v1/machines/${'0'.repeat(32)}`],
      ] as const) {
        const answer = await person.send(method, path, { name });
        expect([answer.status, await errorOf(answer)], `${path} ${JSON.stringify(name)}`).toMatchObject([400, { param: 'name' }]);
      }
    }
    for (const name of GOOD_NAMES) {
      expect((await person.post('/console/auth/update-user', { name })).status).toBe(200);
      expect(await (await person.get('/console/v1/me')).json()).toMatchObject({ name });
      if (name !== '') expect((await person.post('/console/v1/keys', { name })).status).toBe(201);
    }
  });

  it('from before validation are shown without misleading characters', async () => {
    harness = await startHarness({ config: { rateLimits: NO_RATE_LIMITS } });
    const person = new Browser(harness.url);
    await person.signUp('ada@example.com');
    const { id } = (await (await person.get('/console/v1/me')).json()) as { id: string };
    await harness.app.database
      .updateTable('auth_users')
      .set({ name: 'Ada\n\u001b[31mhttps://evil.example' })
      .where('id', '=', id)
      .execute();
    expect(await nameOfAccount(harness.app.database, id)).toBe('Ada [31mhttps://evil.example');
    const listed = (await (await harness.get(`/admin/v1/accounts/${id}`, harness.adminKey)).json()) as { name: string };
    expect(listed.name).toBe('Ada [31mhttps://evil.example');
  });
});
