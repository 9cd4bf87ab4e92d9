/** The lock file check refuses a registry package without a hash. */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, expect, it } from 'vitest';
import { temporaryDirectory } from '../../test/support/temporary-directory.js';

const SCRIPT = fileURLToPath(new URL('check-lockfile.mjs', import.meta.url));
const LOCK = fileURLToPath(new URL('../../package-lock.json', import.meta.url));

let folder: string;
beforeEach(() => {
  folder = temporaryDirectory('check-lockfile');
});

function check(change: (packages: Record<string, Record<string, unknown>>) => void) {
  const lock = JSON.parse(readFileSync(LOCK, 'utf8')) as { packages: Record<string, Record<string, unknown>> };
  change(lock.packages);
  const file = join(folder, 'package-lock.json');
  writeFileSync(file, JSON.stringify(lock));
  const { status, stderr } = spawnSync(process.execPath, [SCRIPT, file], { encoding: 'utf8' });
  return { status, stderr };
}

it('accepts the lock file of this repository', () => {
  expect(check(() => {})).toEqual({ status: 0, stderr: '' });
});

it.each([
  ['no hash', undefined],
  ['a weak hash', 'sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk='],
])('refuses a package with %s', (_, integrity) => {
  const path = 'node_modules/@node-llama-cpp/linux-x64';
  expect(check((packages) => void Object.assign(packages[path] as object, { integrity }))).toEqual({
    status: 1,
    stderr: `${path} has no sha512 integrity\n`,
  });
});

it('refuses an exception that is none any more', () => {
  const integrity = `sha512-${'A'.repeat(86)}==`;
  const { status, stderr } = check(
    (packages) => void Object.assign(packages['node_modules/@node-llama-cpp/mac-x64'] as object, { integrity }),
  );
  expect([status, stderr]).toEqual([1, expect.stringContaining('remove it from the exceptions')]);
});
