/** `inference-verify log` as a separate program, against honest and dishonest logs. */
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { encodeEntryBundle, encodeLogEntry, keysetLogEntry, parseTilePath } from '@inference/protocol';
import { sha256 } from '@inference/protocol/crypto';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { TestLog, TestSigner } from '../packages/protocol/test/log/log-fixture.js';
import { closeServer, listenLocally } from './support/local-server.js';
import { runNode } from './support/run-command.js';
import { temporaryDirectory } from './support/temporary-directory.js';

const program = fileURLToPath(new URL('../packages/verifier/bin/inference-verify.js', import.meta.url));

const entriesOf = (count: number, variant = 0): Uint8Array[] =>
  Array.from({ length: count }, (_, epoch) => encodeLogEntry(keysetLogEntry(sha256, epoch, Uint8Array.of(epoch, variant))));

const honest = new TestLog(entriesOf(30));
/** Log with the first ten entries of `honest`, and other entries after them. */
const fork = new TestLog([...entriesOf(10), ...entriesOf(30, 1).slice(10)]);
const witness = new TestSigner('witness.example', 5, 'cosignature');

/** What the operator serves. */
interface Served {
  log: TestLog;
  size: number;
  signedAt: number;
  witnesses: readonly TestSigner[];
}

let served: Served;
let server: Server;
let base: string;
let scratch: string;

beforeEach(async () => {
  served = { log: honest, size: 20, signedAt: Date.now(), witnesses: [] };
  scratch = temporaryDirectory('verify-log');
  server = createServer((request, response) => {
    answer(request.url ?? '').then(
      (body) => (body === null ? response.writeHead(404).end() : response.end(body)),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  base = await listenLocally(server);
});
afterEach(async () => {
  await closeServer(server);
});

async function answer(url: string): Promise<string | Uint8Array | null> {
  const { log, size, signedAt, witnesses } = served;
  const path = url.replace('/e2e/log/', '');
  if (path === 'key') return `${log.signer.verifierKey}\n`;
  if (path === 'checkpoint') return log.checkpoint(size, signedAt, witnesses);
  const tile = parseTilePath(path);
  if (tile === null) return null;
  return tile.level === 'entries'
    ? encodeEntryBundle(log.entries.slice(256 * tile.index, 256 * tile.index + tile.width))
    : log.readTile(tile);
}

const audit = (...args: readonly string[]) => runNode([program, 'log', '--base-url', base, ...args]);

it('verifies a log that grows, and stores its checkpoint', async () => {
  const file = join(scratch, 'store.json');
  const first = await audit('--store', file);
  expect(first, first.stderr).toMatchObject({ code: 0 });
  expect(first.stdout).toContain('20 entries');
  expect(first.stdout).toContain('keyset 20');
  expect(first.stdout).toContain('unwitnessed');
  expect(first.stdout).toContain('key, taken from the network itself');
  served.size = 30;
  const second = await audit('--store', file, '--json');
  expect(second.code, second.stderr).toBe(0);
  expect(JSON.parse(second.stdout)).toMatchObject({ newEntryCount: 10 });
  expect((await audit('--store', file)).stdout).toContain('audited now: 0, by earlier audits: 30');
  expect(JSON.parse(second.stdout)).toMatchObject({ ok: true, size: 30, entryCounts: { keyset: 30 }, problems: [] });
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ key: honest.signer.verifierKey, checkpoint: { size: 30 } });
});

it('refuses a fork and a rollback, and retains the stored checkpoint', async () => {
  const file = join(scratch, 'store.json');
  expect((await audit('--store', file)).code).toBe(0);
  const before = readFileSync(file, 'utf8');
  served = { ...served, log: fork, size: 30 };
  expect(await audit('--store', file)).toMatchObject({ code: 1, stdout: expect.stringContaining('split_view') });
  served = { ...served, log: honest, size: 15, signedAt: served.signedAt + 2000 };
  expect(await audit('--store', file)).toMatchObject({ code: 1, stdout: expect.stringContaining('shorter than at an earlier time') });
  served = { ...served, size: 30, signedAt: Date.now() - 2 * 3_600_000 };
  expect(await audit('--store', file)).toMatchObject({ code: 1, stdout: expect.stringContaining('stale') });
  expect(readFileSync(file, 'utf8')).toBe(before);
});

it('requires the cosignatures of its witnesses', async () => {
  const args = ['--key', honest.signer.verifierKey, '--witnesses', witness.verifierKey];
  expect(await audit(...args)).toMatchObject({ code: 1, stdout: expect.stringContaining('0 of 1 required witnesses') });
  served.witnesses = [witness];
  expect(await audit(...args)).toMatchObject({ code: 0, stdout: expect.stringContaining('cosigned by witness.example') });
});

it('separates wrong usage and missing evidence from refusals', async () => {
  expect(await audit('--key', 'nonsense')).toMatchObject({ code: 2 });
  expect(await audit('--quorum', '1')).toMatchObject({ code: 2 });
  expect(await audit('--key', new TestSigner('log.example/e2e/log', 9, 'ed25519').verifierKey)).toMatchObject({ code: 1 });
  served = { ...served, log: new TestLog(entriesOf(3)), size: 3 };
  base += '/elsewhere';
  expect(await audit()).toMatchObject({ code: 3, stderr: expect.stringContaining('answered 404') });
});
