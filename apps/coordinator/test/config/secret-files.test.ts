/** Secrets from files, and the settings of mail. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { readConfig } from '../../src/config/config.js';
import { readMail } from '../../src/config/mail.js';
import { SECRET_SETTINGS, withSecretFiles } from '../../src/config/secret-files.js';

it('reads each secret from a file, without its final line break', () => {
  const folder = temporaryDirectory('secret-files');
  const file = (name: string, content: string): string => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const env = Object.fromEntries(SECRET_SETTINGS.map((name) => [`${name}_FILE`, file(name, `value of ${name}\n`)]));
  const read = withSecretFiles(env);
  expect(SECRET_SETTINGS.map((name) => read[name])).toEqual(SECRET_SETTINGS.map((name) => `value of ${name}`));
  const config = readConfig({
    AUTH_SECRET_FILE: file('auth', `${'s'.repeat(31)} \r\n`),
    DATABASE_URL_FILE: file('url', 'postgres://u@h/d'),
    STRIPE_SECRET_KEY_FILE: file('stripe', 'sk_live'),
    STRIPE_WEBHOOK_SECRET: 'whsec',
  });
  expect(config).toMatchObject({
    databaseUrl: 'postgres://u@h/d',
    console: { authSecret: `${'s'.repeat(31)} ` },
    stripe: { secretKey: 'sk_live' },
  });

  const [secret, empty] = [file('secret', 'hush'), file('empty', '\n')];
  expect(() => readConfig({ MAIL_TOKEN: 'x', MAIL_TOKEN_FILE: secret })).toThrow('MAIL_TOKEN and MAIL_TOKEN_FILE are both set');
  expect(() => readConfig({ MAIL_TOKEN_FILE: empty })).toThrow(`MAIL_TOKEN_FILE names the file ${empty}, which is empty.`);
  expect(() => readConfig({ MAIL_TOKEN_FILE: file('lines', 'a\nb\n') })).toThrow('must contain one line');
  expect(() => readConfig({ MAIL_TOKEN_FILE: join(folder, 'none') })).toThrow(
    /MAIL_TOKEN_FILE names the file .*none, which cannot be read: ENOENT\./,
  );
  expect(() => readConfig({ MAIL_TOKEN_FILE: folder })).toThrow('cannot be read: EISDIR');
  expect(() => readConfig({ ADMIN_KEY_FILE: secret })).toThrow(/^ADMIN_KEY must be (?!.*hush)/);
});

it('reads the address of an SMTP server, and never repeats a password', () => {
  const MAIL_FROM = 'Example <no-reply@example.com>';
  const smtp = (url: string, more = {}) => readMail({ SMTP_URL: url, MAIL_FROM, ...more });
  const base = { kind: 'smtp', from: MAIL_FROM };
  expect(smtp('smtp://mail.example')).toEqual({ ...base, host: 'mail.example', port: 587, tls: 'starttls', login: null });
  expect(smtp('smtps://a%40b:p%3Aw@mail.example/')).toEqual({
    ...base,
    host: 'mail.example',
    port: 465,
    tls: 'implicit',
    login: { user: 'a@b', password: 'p:w' },
  });
  expect(smtp('smtp://ada@[::1]:25?tls=none', { SMTP_PASSWORD: 'hush' })).toMatchObject({
    host: '::1',
    port: 25,
    tls: 'none',
    login: { password: 'hush' },
  });
  expect(readMail({})).toBeNull();
  const refusals: readonly [Record<string, string>, RegExp][] = [
    [{ SMTP_URL: 'smtp://u:hush@h' }, /^SMTP_URL needs MAIL_FROM/],
    [{ SMTP_URL: 'smtp://h', MAIL_FROM: 'a@b, c@d' }, /^MAIL_FROM must be an address/],
    [{ SMTP_URL: 'smtp://h', MAIL_FROM: 'a@b\r\nBcc: c@d' }, /^MAIL_FROM must be an address/],
    [{ SMTP_URL: 'mail.example:587', MAIL_FROM }, /^SMTP_URL must look like/],
    [{ SMTP_URL: 'smtp://u:hush@h/path', MAIL_FROM }, /^SMTP_URL must look like/],
    [{ SMTP_URL: 'smtp://u:hush@h?tls=maybe', MAIL_FROM }, /^SMTP_URL has an unknown option/],
    [{ SMTP_URL: 'smtps://h?tls=none', MAIL_FROM }, /^SMTP_URL has an unknown option/],
    [{ SMTP_URL: 'smtp://u:hush@mail.example?tls=none', MAIL_FROM }, /unencrypted/],
    [{ SMTP_URL: 'smtp://u@h', MAIL_FROM }, /needs a user and a password/],
    [{ SMTP_URL: 'smtp://u:hush@h', SMTP_PASSWORD: 'other', MAIL_FROM }, /remove one of them/],
    [{ SMTP_URL: 'smtp://u:hush%@h', MAIL_FROM }, /percent-encoded/],
    [{ SMTP_PASSWORD: 'hush' }, /^SMTP_PASSWORD needs SMTP_URL/],
    [{ SMTP_URL: 'smtp://h', MAIL_FROM, MAIL_URL: 'http://h' }, /^MAIL_URL and SMTP_URL are both set/],
  ];
  for (const [env, message] of refusals) {
    expect(() => readMail(env)).toThrow(message);
    expect(() => readMail(env)).not.toThrow('hush');
  }
});
