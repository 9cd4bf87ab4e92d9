/** PostgreSQL's programs are chosen by version and get no password in arguments. A failed `pg_restore` is never committed. */
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { connectionVariables, findPostgresTool, loadDump, runPostgresTool } from '../../src/backup/postgres-tools.js';

const url = 'postgres://us%40er:pass%2Fword@[::1]:5433/data%20base?sslmode=no-verify&keepAlive=true';

/** Creates a shell script with these commands in place of a PostgreSQL program. */
function fakeTool(name: string, ...commands: string[]): string {
  const path = join(temporaryDirectory('postgres-tools'), name);
  writeFileSync(path, ['#!/bin/sh', ...commands, ''].join('\n'));
  chmodSync(path, 0o755);
  return path;
}

it('passes the connection in variables of libpq, without parameters of other drivers', () => {
  expect(connectionVariables(url)).toEqual({
    PGHOST: '::1',
    PGPORT: '5433',
    PGUSER: 'us@er',
    PGPASSWORD: 'pass/word',
    PGDATABASE: 'data base',
    PGSSLMODE: 'require',
    PGAPPNAME: 'inference-coordinator-backup',
    PGCONNECT_TIMEOUT: '10',
  });
  expect(connectionVariables('postgres:///db?host=/run/postgresql')).toMatchObject({ PGHOST: '/run/postgresql', PGDATABASE: 'db' });
});

it('takes a program of the major version of the server only', async () => {
  const folder = (version: string): string => join(fakeTool('pg_dump', `echo "pg_dump (PostgreSQL) ${version}"`), '..');
  const right = folder('15.20 (Debian 15.20-0+deb12u1)');
  expect(await findPostgresTool('pg_dump', 15, right)).toBe(join(right, 'pg_dump'));
  await expect(findPostgresTool('pg_dump', 15, folder('17.2'))).rejects.toThrow(/PostgreSQL 15.*is version 17\.2.*postgresql-client-15/);
  await expect(findPostgresTool('psql', 15, right)).rejects.toThrow(/^psql of PostgreSQL 15, .*--postgres-bin/);
});

it('reports the first error of a program', async () => {
  const signal = new AbortController().signal;
  const failing = fakeTool('pg_dump', 'echo "pg_dump: error: first" >&2', 'echo "pg_dump: detail: more" >&2', 'exit 1');
  await expect(runPostgresTool(failing, [], { url, signal })).rejects.toThrow('pg_dump failed: pg_dump: error: first');
  await expect(runPostgresTool(`${failing}-missing`, [], { url, signal })).rejects.toThrow('ENOENT');
});

it('commits only after a complete dump', async () => {
  const signal = new AbortController().signal;
  const received = join(temporaryDirectory('postgres-tools'), 'received');
  const psql = fakeTool('psql', `exec cat > '${received}'`);
  const load = (restore: string) =>
    loadDump({ restore: [restore], psql, before: 'begin;\n', after: 'commit;\n' }, { url, signal }).catch(String);
  expect(await load(fakeTool('pg_restore', 'echo "create table a ();"'))).toBeUndefined();
  expect(readFileSync(received, 'utf8')).toBe('begin;\ncreate table a ();\ncommit;\n');
  expect(await load(fakeTool('pg_restore', 'echo "create table a ();"', 'echo "pg_restore: error: damaged" >&2', 'exit 1'))).toContain(
    'damaged',
  );
  expect(readFileSync(received, 'utf8')).not.toContain('commit');
  // If `psql` ends first, as after a failed statement, its error is reported.
  const refusing = fakeTool('psql', 'read line', 'echo "psql:<stdin>:1: ERROR:  a coordinator uses the database" >&2', 'exit 3');
  const endless = fakeTool('pg_restore', 'while echo "select 1;"; do :; done');
  const error = await loadDump({ restore: [endless], psql: refusing, before: 'begin;\n', after: '' }, { url, signal }).catch(String);
  expect(error).toContain('psql failed: ERROR:  a coordinator uses the database');
});
