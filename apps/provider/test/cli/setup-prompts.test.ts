/** Questions of `setup` on a terminal. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { stateOf } from '../../src/cli/setup/enrolment.js';
import type { DaemonStatus } from '../../src/control/daemon-status.js';
import { demoModel } from '../demo-model.js';
import { FileServer } from '../file-server.js';
import { MAIN, runningStatus } from '../support/owner-command.js';
import { Terminal } from '../support/terminal.js';

let dataDir: string;
let terminal: Terminal;
let hub: FileServer;
beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'owner-'));
  hub = await FileServer.listen();
});
afterEach(async () => {
  await terminal.dispose();
  await hub.close();
  rmSync(dataDir, { recursive: true, force: true });
});

function open(command: string): Terminal {
  terminal = new Terminal(`${process.execPath} ${MAIN} ${command} --data-dir ${dataDir}`, {
    columns: 100,
    rows: 40,
    env: { HF_ENDPOINT: hub.url },
  });
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
  await view.shows('Enrol this Mac in device management');
  view.type('no\r');
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

/** Offers a model at the hub; its content is the model that ships with the program. */
function offer(repository: string, downloads: number): void {
  const path = `/${repository}/resolve/main/${repository.split('/')[1]}-Q4_K_M.gguf`;
  hub.put(path, readFileSync(demoModel()));
  hub.repositories.push({ id: repository, downloads });
}

it('offers the recommended models, lists published facts, and explains enrolment', async () => {
  offer('lab/Some-4B-GGUF', 5);
  offer('lab/Other-8B-GGUF', 9);
  const view = open(`setup --no-link --coordinator http://127.0.0.1:${(coordinator.address() as AddressInfo).port}`);
  const list = await view.shows('Model: its number');
  expect(list).toMatch(/The coordinator publishes the\s+serial\s+number/);
  expect(list).toMatch(/1\. hf:lab\/Other-8B-GGUF:Q4_K_M.+no data\n *2\. hf:lab\/Some-4B-GGUF:Q4_K_M.+\n *3\. demo: tiny/);
  expect(list).toContain('No demand data, so no estimated earnings');
  view.type('1\r');
  await view.shows('Serving times');
  view.type('\r');
  const asked = await view.shows('Enrol this Mac in device management');
  expect(asked).toMatch(/Can see: +device information such as serial number/);
  expect(asked).toMatch(/Cannot: +see files/);
  view.type('yes\r');
  await view.shows('Start the provider now');
  view.type('no\r');
  const end = await view.shows('To start the provider, run: inference-provider start');
  expect(end).toContain('not serving yet');
  expect(await view.exit).toBe(0);
  expect(readFileSync(join(dataDir, 'config.toml'), 'utf8')).toMatch(/\[enrolment\]\s+enrol = true/);
});

it('downloads the first recommendation for a script that asks for it', async () => {
  offer('lab/Other-8B-GGUF', 9);
  const url = `http://127.0.0.1:${(coordinator.address() as AddressInfo).port}`;
  const view = open(`setup --yes --no-link --no-start --model recommended --coordinator ${url}`);
  await view.shows(/set up to serve \S+, but is not serving yet/);
  expect(await view.exit).toBe(0);
});

it('knows the state of an enrolment', () => {
  const trust = (reason: string) =>
    ({
      type: 'trust',
      trust_level: 'self_signed',
      routable: false,
      status: 'online',
      parts: [{ part: 'device_management', ok: false, reason }],
    }) as unknown as NonNullable<DaemonStatus['trust']>;
  expect(stateOf(null)).toEqual({ kind: 'unknown' });
  expect(stateOf(runningStatus(dataDir, { trust: trust('not_enrolled') }))).toEqual({ kind: 'unknown' });
  const offered = { state: 'offered', url: 'https://example/once', expires_at: 1 } as const;
  expect(stateOf(runningStatus(dataDir, { trust: trust('not_enrolled'), enrolment: offered }))).toEqual({
    kind: 'offered',
    url: offered.url,
  });
  expect(
    stateOf(runningStatus(dataDir, { trust: trust('not_enrolled'), enrolment: { state: 'refused', reason: 'not_configured' } })),
  ).toEqual({ kind: 'refused', reason: 'not_configured' });
  expect(stateOf(runningStatus(dataDir, { trust: trust('chain_refused'), enrolment: offered }))).toEqual({ kind: 'enrolled' });
});
