/** `inference-verify log` as a separate program, against honest and dishonest logs. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { encodeEntryBundle, encodeLogEntry, keysetLogEntry, parseTilePath } from '@inference/protocol';
import { sha256 } from '@inference/protocol/crypto';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { TestLog, TestSigner } from '../packages/protocol/test/log/log-fixture.js';

const program = fileURLToPath(new URL('../packages/verifier/bin/inference-verify.js', import.meta.url));

const entriesOf = (count: number, variant = 0): Uint8Array[] =>
  Array.from({ length: count }, (_, epoch) => encodeLogEntry(keysetLogEntry(sha256, epoch, Uint8Array.of(epoch, variant))));

const honest = new TestLog(entriesOf(30));
/** Shares ten entries with `honest`. */
const fork = new TestLog([...entriesOf(10), ...entriesOf(30, 1).slice(10)]);
const witness = new TestSigner('witness.example', 5, 'cosignature');

/** Served by the operator. */
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
  scratch = mkdtempSync(join(tmpdir(), 'verify-log-'));
  server = createServer((request, response) => {
    answer(request.url ?? '').then(
      (body) => (body === null ? response.writeHead(404).end() : response.end(body)),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(async () => {
  rmSync(scratch, { recursive: true, force: true });
  server.closeAllConnections();
  await new Promise((resolve) => {
    server.close(resolve);
  });
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

interface Run {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

function audit(...args: readonly string[]): Promise<Run> {
  return new Promise((resolve) => {
    execFile(process.execPath, [program, 'log', '--base-url', base, ...args], (error, out, err) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, out, err });
    });
  });
}

it('verifies a log that grows, and stores its checkpoint', async () => {
  const file = join(scratch, 'store.json');
  const first = await audit('--store', file);
  expect(first, first.err).toMatchObject({ code: 0 });
  expect(first.out).toContain('20 entries');
  expect(first.out).toContain('keyset 20');
  expect(first.out).toContain('unwitnessed');
  expect(first.out).toContain('key, taken from the network itself');
  served.size = 30;
  const second = await audit('--store', file, '--json');
  expect(second.code, second.err).toBe(0);
  expect(JSON.parse(second.out)).toMatchObject({ newEntryCount: 10 });
  expect((await audit('--store', file)).out).toContain('audited now: 0, by earlier audits: 30');
  expect(JSON.parse(second.out)).toMatchObject({ ok: true, size: 30, entryCounts: { keyset: 30 }, problems: [] });
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ key: honest.signer.verifierKey, checkpoint: { size: 30 } });
});

it('refuses a fork and a rollback, and retains the stored checkpoint', async () => {
  const file = join(scratch, 'store.json');
  expect((await audit('--store', file)).code).toBe(0);
  const before = readFileSync(file, 'utf8');
  served = { ...served, log: fork, size: 30 };
  expect(await audit('--store', file)).toMatchObject({ code: 1, out: expect.stringContaining('split_view') });
  served = { ...served, log: honest, size: 15, signedAt: served.signedAt + 2000 };
  expect(await audit('--store', file)).toMatchObject({ code: 1, out: expect.stringContaining('shorter than at an earlier time') });
  served = { ...served, size: 30, signedAt: Date.now() - 2 * 3_600_000 };
  expect(await audit('--store', file)).toMatchObject({ code: 1, out: expect.stringContaining('stale') });
  expect(readFileSync(file, 'utf8')).toBe(before);
});

it('requires the cosignatures of its witnesses', async () => {
  const args = ['--key', honest.signer.verifierKey, '--witnesses', witness.verifierKey];
  expect(await audit(...args)).toMatchObject({ code: 1, out: expect.stringContaining('0 of 1 required witnesses') });
  served.witnesses = [witness];
  expect(await audit(...args)).toMatchObject({ code: 0, out: expect.stringContaining('cosigned by witness.example') });
});

it('separates wrong usage and missing evidence from refusals', async () => {
  expect(await audit('--key', 'nonsense')).toMatchObject({ code: 2 });
  expect(await audit('--quorum', '1')).toMatchObject({ code: 2 });
  expect(await audit('--key', new TestSigner('log.example/e2e/log', 9, 'ed25519').verifierKey)).toMatchObject({ code: 1 });
  served = { ...served, log: new TestLog(entriesOf(3)), size: 3 };
  base += '/elsewhere';
  expect(await audit()).toMatchObject({ code: 3, err: expect.stringContaining('answered 404') });
});
