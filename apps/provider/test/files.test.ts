/** Files that are written whole or not at all, and what is said where the file system refuses. */
import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryDirectory } from '../../../test/support/temporary-directory.js';
import { writePrivateFile } from '../src/files/private-file.js';
import { systemProblem } from '../src/files/system-error.js';
import { startupErrorText } from '../src/startup-error.js';

const folder = temporaryDirectory('files');

test('a file that could not be written leaves nothing behind', () => {
  writePrivateFile(join(folder, 'a'), 'text');
  expect(readFileSync(join(folder, 'a'), 'utf8')).toBe('text');
  expect(statSync(join(folder, 'a')).mode & 0o777).toBe(0o600);
  mkdirSync(join(folder, 'b'));
  expect(() => writePrivateFile(join(folder, 'b'), 'text')).toThrow();
  expect(readdirSync(folder)).toEqual(['a', 'b']);
});

test('a full disk is not a provider that could not start', () => {
  const error = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
  expect(startupErrorText(error)).toBe('The disk is full; free some space and try again.');
  expect(systemProblem(Object.assign(new Error(), { code: 'EACCES', path: '/x' }))).toContain('/x cannot be read or written by you');
  expect(systemProblem(new Error('ENOSPC'))).toBeNull();
});
