/** `serve` on a terminal. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { MAIN } from '../support/owner-command.js';
import { Terminal } from '../support/terminal.js';

let dataDir: string;
let terminal: Terminal;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'owner-'));
});
afterEach(async () => {
  await terminal.dispose();
  rmSync(dataDir, { recursive: true, force: true });
});

function open(command: string): Terminal {
  terminal = new Terminal(`${process.execPath} ${MAIN} ${command} --data-dir ${dataDir}`, { columns: 100, rows: 40 });
  return terminal;
}

it('serve prints text instead of JSON lines', async () => {
  const view = open('serve --simulated-enclave --coordinator http://127.0.0.1:1');
  await view.shows(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d WARN {2}not connected to the coordinator/m);
  view.type('\u0003');
  expect(await view.exit).toBe(0);
  expect(view.output).not.toContain('"level"');
});
