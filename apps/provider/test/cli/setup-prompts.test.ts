/** Questions of `setup` on a terminal. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
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

let coordinator: Server;
beforeEach(async () => {
  coordinator = createServer((request, response) => {
    response.writeHead(request.url === '/health' ? 200 : 404, { 'content-type': 'application/json' }).end('{"status":"ok"}');
  });
  await new Promise<void>((resolve) => coordinator.listen(0, '127.0.0.1', resolve));
});
afterEach(() => new Promise((resolve) => coordinator.close(resolve)));

it('says why it asks a question again', async () => {
  const view = open(`setup --coordinator http://127.0.0.1:${(coordinator.address() as AddressInfo).port}`);
  await view.shows('Link this machine to your account now');
  view.type('maybe\r');
  await view.shows(/Type yes or no, not "maybe"\.\s+Link this machine to your account now/);
  view.type('no\r');
  await view.shows('Model: its number');
  view.type('99\r');
  await view.shows(/There is no model 99 in this list; its numbers are 1 to \d+\.[\s\S]*Model: its number/);
  view.type('1\r');
  await view.shows('Serving times');
  view.type('\r');
  await view.shows('Start the provider now');
  view.type('no\r');
  expect(await view.exit).toBe(0);
  await view.dispose();

  // A second setup asks again for the model, because none of the owner's is in use.
  const again = open('setup --no-link');
  await again.shows('Address of the coordinator');
  again.type('\r');
  await again.shows('Models: none chosen yet');
  await again.shows('Model: its number');
  again.type('\u0003');
  expect(await again.exit).toBe(1);
});
