/** Prompts on a real terminal: an abort is not the answer no, but ends the command. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { Terminal } from '../support/terminal.js';

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const CTRL_C = '\u0003';
const CTRL_D = '\u0004';

let dataDir: string;
let terminal: Terminal;
beforeEach(() => {
  dataDir = temporaryDirectory('confirm');
  writeFileSync(join(dataDir, 'config.toml'), '');
  terminal = new Terminal(`${process.execPath} ${MAIN} uninstall --data-dir ${dataDir}`, { columns: 80, rows: 24 });
});
afterEach(() => terminal.dispose());

test.each([
  ['Ctrl-C', CTRL_C],
  ['the end of the input', CTRL_D],
])('%s at any question ends the command, and nothing is done', async (_, key) => {
  await terminal.shows('Remove the agent from this machine?');
  terminal.type('y\r');
  await terminal.shows('Remove the data as well?');
  terminal.type(key);
  await terminal.shows('Canceled. Nothing was changed.');
  expect(await terminal.exit).toBe(1);
  expect(existsSync(join(dataDir, 'config.toml'))).toBe(true);
  expect(terminal.output).not.toContain('Removed');
});
