/** Commands of the coordinator, on both databases. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { sql } from 'kysely';
import { afterEach, describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { COMMANDS } from '../../src/commands/command-table.js';
import { errorReason, packageProblem } from '../../src/config/startup-error.js';
import { openDatabase } from '../../src/database/connection/open-database.js';
import { MIGRATIONS } from '../../src/database/migrations/all.js';
import type { Database } from '../../src/database/tables.js';
import { runCommand } from '../support/command-run.js';
import { describeDatabases } from '../support/databases.js';
import { type Content, migratedFile, type TestDatabase } from '../support/fresh-database.js';

describe('the command line', () => {
  it('has help for each command, and exit code 2 for mistakes', async () => {
    const overview = await runCommand(['--help']);
    expect(overview.code).toBe(0);
    // Without `serve`, whose module loads the whole coordinator. A process test covers its help.
    for (const { name, load } of COMMANDS.filter((command) => command.name !== 'serve')) {
      expect(overview.out).toContain(`  ${name} `);
      const { usage } = await load();
      expect(usage.startsWith(name)).toBe(true);
      expect(await runCommand([name, '--help'])).toMatchObject({
        code: 0,
        out: expect.stringContaining(`Usage: inference-coordinator ${name}`),
      });
    }
    expect(await runCommand(['help', 'migrate'])).toEqual(await runCommand(['migrate', '-h']));
    const mistakes: readonly [string[], string][] = [
      [['migrat'], 'There is no command "migrat" (did you mean migrate?).'],
      [['something'], 'There is no command "something". For a list'],
      [['migrate', '--plann'], "Unknown option '--plann'."],
      [['migrate', 'now'], "Unexpected argument 'now'."],
      [['migrate', '--plan=1'], "Option '--plan' does not take an argument."],
      [['check', '--release-key='], '--release-key needs a value.'],
      [['admin', 'create', '--email', 'a@b.example', '--email', 'b@b.example'], '--email is given twice.'],
      [['migrate', '--env-file'], '--env-file needs a file.'],
      [['migrate', '--env-file=a', '--env-file=b'], '--env-file is given twice.'],
      [['migrate', '--env-file', '/nowhere/settings.env'], 'The settings file /nowhere/settings.env cannot be read: ENOENT.'],
    ];
    for (const [args, message] of mistakes)
      expect(await runCommand(args)).toMatchObject({ code: 2, out: '', err: expect.stringContaining(message) });
  });

  it('names a package that is missing, not compiled, or compiled for another Node', () => {
    const script = "import('absent-package/part').catch(({ code, message }) => console.log(JSON.stringify({ code, message })))";
    const { code, message } = JSON.parse(execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' }));
    const missing = 'the package absent-package is missing: install the coordinator again';
    expect(packageProblem(Object.assign(new Error(message), { code }))).toBe(missing);
    let error: unknown;
    try {
      createRequire(import.meta.url)('absent-package');
    } catch (thrown) {
      error = thrown;
    }
    expect(errorReason(error)).toBe(missing);
    const file = join(temporaryDirectory('package'), 'node_modules/@scope/name/build');
    mkdirSync(file, { recursive: true });
    writeFileSync(join(file, 'name.node'), 'not a library');
    try {
      createRequire(import.meta.url)(join(file, 'name.node'));
    } catch (thrown) {
      error = thrown;
    }
    expect(errorReason(error)).toMatch(/^the package @scope\/name was not compiled for Node /);
    const findBindings = createRequire(createRequire(import.meta.url).resolve('better-sqlite3'))('bindings') as (options: object) => void;
    try {
      findBindings({ bindings: 'absent.node', module_root: '/packages/node_modules/@scope/name' });
    } catch (thrown) {
      error = thrown;
    }
    expect(errorReason(error)).toMatch(/^the package @scope\/name was not compiled: .* --allow-scripts=@scope\/name$/);
    expect(packageProblem(new Error('else'))).toBeNull();
  });

  it('reads settings from a file, after the environment', async () => {
    const folder = temporaryDirectory('commands');
    const file = join(folder, 'settings.env');
    const read = async (text: string, env = {}) => {
      writeFileSync(file, text);
      return runCommand(['migrate', '--plan', '--env-file', file], env);
    };
    const data = join(folder, 'data');
    expect((await read(`# comment\n\nexport DATA_DIR="${data}" # here\nLOG_LEVEL=info\n`)).out).toContain(`SQLite, ${data}/coordinator`);
    expect((await read(`DATA_DIR=${data}\n`, { DATA_DIR: folder })).out).toContain(`SQLite, ${folder}/coordinator`);
    expect((await read(`DATA_DIR=${data}\n`, { DATA_DIR: '' })).out).toContain(`SQLite, ${data}/coordinator`);
    expect((await read(`OPERATOR_ADDRESS="Main Street 1\n12345 Town"\nDATA_DIR=${data}\n`)).code).toBe(0);
    const line = 'Line 2 of the settings file';
    expect(await read('PORT=1\nPORT: hush\n')).toMatchObject({ code: 2, err: `${line} ${file} must have the form NAME=value.` });
    expect(await read('PORT=1\nMAIL_TOKEN=hush#hush\n')).toMatchObject({
      code: 2,
      err: expect.stringMatching(/^Line 2 .* has a # in its value(?!.*hush)/),
    });
    expect(await read('MAIL_TOKEN="hush\nPORT=1\n')).toMatchObject({ code: 2, err: expect.stringMatching(/without its closing "\.$/) });
    const late = `NODE_EXTRA_CA_CERTS in ${file} has no effect`;
    expect((await read(`DATA_DIR=${data}\nNODE_EXTRA_CA_CERTS=/ca.pem\n`)).err).toContain(late);
    expect((await read(`DATA_DIR=${data}\nNODE_EXTRA_CA_CERTS=/ca.pem\n`, { NODE_EXTRA_CA_CERTS: '/other.pem' })).err).toBe('');
    expect(await read('PORT=70000\n')).toMatchObject({ code: 2, err: 'PORT must be a whole number from 0 to 65535, not "70000".' });
  });
});

describeDatabases('commands', (fresh, dialect) => {
  const opened: { place: TestDatabase; database: Database | null }[] = [];
  afterEach(async () => {
    for (const { place, database } of opened.splice(0)) {
      await database?.destroy();
      await place.remove();
    }
  });

  /** Environment that names a new database, and a connection to it. */
  async function setUp(content: Content): Promise<{ env: Record<string, string>; database: Database | null }> {
    const place = await fresh(content);
    const dataDir = temporaryDirectory('commands');
    const file = join(dataDir, 'coordinator/coordinator.db');
    const url = 'url' in place.target ? place.target.url : null;
    if (url === null && content === 'migrated') {
      mkdirSync(dirname(file));
      writeFileSync(file, await migratedFile());
    }
    const database = content === 'empty' ? null : await openDatabase(url === null ? { file } : { url, maxConnections: 2 });
    opened.push({ place, database });
    return { env: { DATA_DIR: dataDir, ...(url === null ? {} : { DATABASE_URL: url }) }, database };
  }

  it('migrate shows the missing migrations, applies them, and refuses a newer schema', async () => {
    const { env } = await setUp('empty');
    const plan = async () => JSON.parse((await runCommand(['migrate', '--plan', '--json'], env)).out);
    const names = Object.keys(MIGRATIONS);
    const first = await plan();
    expect(first).toMatchObject({ schema: null, applied_count: 0, unknown: [], previous_version_keeps_working: false });
    expect(first.pending.map(({ name }: { name: string }) => name)).toEqual(names);
    expect(first.pending).toContainEqual({
      name: '0045_hashed_sign_in_tokens',
      kind: 'contract',
      effect: expect.any(String),
      oldest_program: '0.1.0',
    });
    expect(await plan()).toEqual(first);
    for (const args of [['ledger-check'], ['admin', 'list']]) {
      expect(await runCommand(args, env)).toMatchObject({ err: expect.stringContaining('inference-coordinator migrate') });
    }
    expect(await runCommand(['migrate'], env)).toMatchObject({
      code: 0,
      out: expect.stringContaining(`applied ${names.at(-1)}\nThe schema is up to date`),
    });
    expect((await runCommand(['migrate'], env)).out).not.toContain('applied');
    const target =
      env.DATABASE_URL === undefined ? { file: join(env.DATA_DIR ?? '', 'coordinator/coordinator.db') } : { url: env.DATABASE_URL };
    const database = await openDatabase(target);
    await database
      .deleteFrom('schema_migrations' as 'secrets')
      .where('name', '=', names.at(-1) ?? '')
      .execute();
    expect(await plan()).toMatchObject({
      schema: names.at(-2),
      pending: [{ name: names.at(-1), kind: 'expand' }],
      previous_version_keeps_working: true,
    });
    await expect(openDatabase(target, { migrate: false })).rejects.toThrow(
      `The database lacks a migration ${names.at(-1)}. To apply: inference-coordinator migrate`,
    );
    const later = { name: '9999_later', timestamp: '2030-01-01' };
    await database
      .insertInto('schema_migrations' as 'secrets')
      .values(later as unknown as { name: string; value: string })
      .execute();
    await database.destroy();
    expect(await runCommand(['migrate'], env)).toMatchObject({ code: 1, err: expect.stringContaining('has migration 9999_later') });
  });

  it('admin creates a confirmed account with the flag, and changes it', async () => {
    const { env, database } = await setUp('migrated');
    if (database === null) throw new Error('there is no database');
    const admin = (args: readonly string[], answers?: string[]) => runCommand(['admin', ...args], env, answers);
    const file = join(env.DATA_DIR ?? '', 'password');
    writeFileSync(file, 'a long password\n');
    const ada = ['--email', 'Ada@example.com'];
    expect(await admin(['create', ...ada, '--password-file', file, '--name', 'Ada'])).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^Created the account ada@example\.com \([0-9a-f-]{36}\) with the admin flag\.$/),
    });
    const made = await admin(['create', '--email', 'ben@example.com', '--generate-password']);
    expect(made.out).toMatch(/\nPassword, shown only now: [A-Za-z0-9_-]{24}$/);
    expect(await admin(['create', '--email', 'cy@example.com'], ['another password', 'another password'])).toMatchObject({ code: 0 });

    const refusals: readonly [readonly string[], string[] | undefined, number, string][] = [
      [['create', ...ada, '--generate-password'], undefined, 1, 'has an account'],
      [['create', '--email', 'a@b', '--generate-password'], undefined, 1, 'must be an e-mail address'],
      [['create', '--email', 'nobody', '--generate-password'], undefined, 2, 'must be an e-mail address'],
      [['create', '--email', 'di@example.com', '--name', 'a\nb', '--generate-password'], undefined, 2, '--name must be one line'],
      [['create', '--email', 'di@example.com'], undefined, 2, 'Without a terminal'],
      [['create', '--email', 'di@example.com'], ['long password', 'other password'], 1, 'The passwords differ'],
      [['create', '--email', 'di@example.com'], ['short', 'short'], 1, '10 to 128 characters'],
      [['create', '--email', 'di@example.com', '--generate-password', '--password-file', file], undefined, 2, 'exclude each other'],
      [['create'], undefined, 2, '--email is missing'],
      [['grant', '--email', 'di@example.com'], undefined, 1, 'No account has the e-mail address'],
      [['creat'], undefined, 2, 'There is no command "admin creat"'],
      [['constructor'], undefined, 2, 'There is no command "admin constructor"'],
    ];
    for (const [args, answers, code, message] of refusals)
      expect(await admin(args, answers)).toMatchObject({ code, err: expect.stringContaining(message) });

    expect(await admin(['revoke', ...ada])).toMatchObject({ code: 0, out: 'Ada@example.com no longer has the admin flag.' });
    expect((await admin(['revoke', ...ada])).out).toContain('Nothing was changed');
    expect((await admin(['grant', ...ada])).code).toBe(0);
    // Somebody else may have signed up with an unconfirmed address.
    const ben = ['--email', 'ben@example.com'];
    await admin(['revoke', ...ben]);
    await sql`update auth_users set email_verified = false where email = 'ben@example.com'`.execute(database);
    expect(await admin(['grant', ...ben])).toMatchObject({ code: 1, err: expect.stringContaining('give --unverified') });
    expect(await admin(['revoke', ...ben, '--unverified'])).toMatchObject({ code: 2 });
    expect((await admin(['grant', ...ben, '--unverified'])).code).toBe(0);
    await sql`update auth_users set email_verified = true`.execute(database);
    const listed = JSON.parse((await admin(['list', '--json'])).out) as { email: string }[];
    expect(listed.map(({ email }) => email).sort()).toEqual(['ada@example.com', 'ben@example.com', 'cy@example.com']);
    expect((await admin(['key'])).out).toMatch(/^service-[A-Za-z0-9_-]{43}$/);

    const users = await database.selectFrom('auth_users').select(['email', 'email_verified']).execute();
    expect(users.every(({ email_verified }) => Boolean(email_verified))).toBe(true);
    expect(await database.selectFrom('auth_sessions').selectAll().execute()).toEqual([]);
    const actions = await database.selectFrom('operator_actions').selectAll().orderBy('at').execute();
    const done = actions.filter(({ outcome }) => outcome === 'done').map(({ action }) => action);
    expect(done).toEqual(['admin create', 'admin create', 'admin create', 'admin revoke', 'admin grant', 'admin revoke', 'admin grant']);
    const creations = actions.filter(({ action, outcome }) => action === 'admin create' && outcome === 'done');
    const ids = (await database.selectFrom('auth_users').select('id').execute()).map(({ id }) => id);
    expect(creations.map(({ subject }) => subject).sort()).toEqual(ids.sort());
    expect(JSON.stringify(actions.filter(({ action }) => action === 'admin create'))).not.toMatch(/example\.com|Ada/);
    expect(actions.every(({ operator }) => operator === 'command')).toBe(true);
    expect(JSON.stringify(actions)).not.toMatch(/password/i);
  });

  it('ledger-check verifies the ledger, and names a contradiction', async () => {
    const { env, database } = await setUp('migrated');
    expect(await runCommand(['ledger-check'], env)).toMatchObject({ code: 0, out: expect.stringContaining('the ledger holds') });
    await database?.insertInto('balances').values({ account: 'nobody', balance: 5, reserved: 0, earned: 0 }).execute();
    const found = await runCommand(['ledger-check', '--json'], env);
    expect(found.code).toBe(1);
    expect(JSON.parse(found.out)).toMatchObject({ holds: false, problems: [expect.any(String)] });
    const none = { DATA_DIR: join(env.DATA_DIR ?? '', 'none') };
    if (dialect === 'sqlite')
      expect(await runCommand(['ledger-check'], none)).toMatchObject({ code: 2, err: expect.stringContaining('There is no database') });
  });
});
