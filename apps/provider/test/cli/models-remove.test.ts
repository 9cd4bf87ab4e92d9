/** `models rm` on a terminal: a served model is removed only with consent. */
import { afterEach, expect, it } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { demoModel } from '../demo-model.js';
import { MAIN, runCommand } from '../support/owner-command.js';
import { Terminal } from '../support/terminal.js';

let terminal: Terminal;
afterEach(() => terminal.dispose());

it('asks before it removes a served model', async () => {
  const dataDir = temporaryDirectory('remove');
  await runCommand(dataDir, 'models', 'pull', demoModel(), '--id', 'mine');
  await runCommand(dataDir, 'models', 'use', 'mine');
  const stored = async (): Promise<unknown[]> => JSON.parse((await runCommand(dataDir, 'models', 'list', '--json')).stdout).models;
  const remove = async (typed: string): Promise<number | null> => {
    terminal = new Terminal(`${process.execPath} ${MAIN} models rm mine --data-dir ${dataDir}`, { columns: 100, rows: 24 });
    await terminal.shows(/This machine serves mine \(.+\)\. Stop serving it and remove it\? \[y\/N\]/);
    terminal.type(typed);
    return await terminal.exit;
  };
  expect(await remove('\r')).toBe(1);
  await terminal.dispose();
  expect(await remove('\u0003')).toBe(1);
  expect(await terminal.lines()).toContain('Canceled. Nothing was changed.');
  await terminal.dispose();
  expect(await stored()).toHaveLength(1);
  expect(await remove('y\r')).toBe(0);
  expect(await stored()).toEqual([]);
});
