/** The agent's view of the coordinator's transparency log: growth is followed, other histories are reported and not passed on. */
import { encodeLogEntry, keysetLogEntry, parseSignedNote, parseTilePath, tileWidth, toHex, treeRoot } from '@inference/protocol';
import { sha256 } from '@inference/protocol/crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { TestLog, TestSigner } from '../../../../packages/protocol/test/log/log-fixture.js';
import { LogMonitor } from '../../src/session/log-monitor.js';

const NOW = 1_800_000_000_000;
const HOUR_MS = 3_600_000;
const COORDINATOR = 'https://coordinator.invalid';

const entriesOf = (count: number, variant = 0): Uint8Array[] =>
  Array.from({ length: count }, (_, epoch) => encodeLogEntry(keysetLogEntry(sha256, epoch, Uint8Array.of(epoch, variant))));
const log = new TestLog(entriesOf(600));
/** Shares 200 leaves with `log`. */
const fork = new TestLog([...entriesOf(200), ...entriesOf(600, 1).slice(200)]);
const witness = new TestSigner('witness.example', 6, 'cosignature');

let served: { readonly log: TestLog; readonly size: number };
let key: string;
let now: number;
/** Answers instead of the log. */
let instead: ((path: string) => Response) | null;
let contradictions: string[];
let otherHeads: number;
let downloads: string[];
let monitor: LogMonitor;

beforeEach(() => {
  served = { log, size: 280 };
  key = log.signer.verifierKey;
  now = NOW;
  instead = null;
  contradictions = [];
  otherHeads = 0;
  downloads = [];
  monitor = new LogMonitor({
    coordinator: COORDINATOR,
    now: () => now,
    onContradiction: (reason) => contradictions.push(reason),
    onOtherHead: () => otherHeads++,
    fetch: async (url) => {
      const path = url.slice(`${COORDINATOR}/e2e/log/`.length);
      downloads.push(path);
      return instead?.(path) ?? respond(path);
    },
  });
});
afterEach(() => monitor.close());

async function respond(path: string): Promise<Response> {
  if (path === 'key') return new Response(`${key}\n`);
  if (path === 'checkpoint') return new Response(served.log.checkpoint(served.size, now, [witness]));
  const tile = parseTilePath(path);
  const isServed = tile !== null && tileWidth(tile.level, tile.index, served.size) >= tile.width;
  return isServed ? new Response(new Uint8Array(await served.log.readTile(tile))) : new Response(null, { status: 404 });
}

const headOf = async (source: TestLog, size: number) => ({ size, root: toHex(await treeRoot(sha256, source.subtree, size)) });
const smaller = () => headOf(log, 10);

/** Size that the monitor reports to a client with a small tree; null: none. */
async function reported(): Promise<number | null> {
  const note = monitor.checkpointFor(await smaller());
  return note === null ? null : Number(parseSignedNote(note).text.split('\n')[1]);
}

test('follows a log that grows, and reports its signatures without cosignatures', async () => {
  expect(await reported()).toBeNull();
  await monitor.refresh();
  expect(await reported()).toBe(280);
  const note = monitor.checkpointFor(await smaller()) as string;
  expect(parseSignedNote(note).signatures.map(({ name }) => name)).toEqual(Array(2).fill(log.signer.key.name));
  served = { log, size: 500 };
  now += 300_000;
  await monitor.refresh();
  expect(await reported()).toBe(500);
  expect(downloads.filter((path) => path === 'key')).toHaveLength(1);
  expect(contradictions).toEqual([]);
});

test.each<[string, () => void]>([
  ['a fork', () => (served = { log: fork, size: 500 })],
  ['a log that was rolled back', () => (served = { log, size: 100 })],
  ['a checkpoint of another key', () => (instead = (path) => new Response(path === 'checkpoint' ? other.checkpoint(0, now) : null))],
  ['bytes that are no text', () => (instead = () => new Response(Uint8Array.of(0xff)))],
])('reports %s, and retains the earlier checkpoint', async (_name, change) => {
  await monitor.refresh();
  change();
  now += 300_000;
  await monitor.refresh();
  expect(contradictions).toHaveLength(1);
  expect(await reported()).toBe(280);
});

const other = Object.assign(new TestLog([]), { signer: new TestSigner('log.example/e2e/log', 9, 'ed25519') });

test.each<[string, () => Response]>([
  ['no log', () => new Response(null, { status: 404 })],
  ['an error', () => new Response(null, { status: 503 })],
  ['an endless checkpoint', () => new Response(new Uint8Array(20_000))],
])('is silent about a coordinator with %s', async (_name, response) => {
  instead = response;
  await monitor.refresh();
  expect(await reported()).toBeNull();
  expect(contradictions).toEqual([]);
});

test('starts anew with a replaced log after an hour without a verified checkpoint', async () => {
  await monitor.refresh();
  key = other.signer.verifierKey;
  instead = (path) => new Response(path === 'key' ? key : other.checkpoint(0, now));
  now += HOUR_MS - 1;
  await monitor.refresh();
  expect(contradictions).toHaveLength(1);
  expect(await reported()).toBe(280);
  now += 1;
  expect(await reported(), 'too old to report').toBeNull();
  await monitor.refresh();
  expect(await reported()).toBe(0);
});

test("downloads again for a client with a larger tree, at most every ten seconds, and never passes the client's tree on", async () => {
  monitor.start();
  await monitor.refresh();
  const larger = { size: 9_000_000, root: 'cd'.repeat(32) };
  const before = downloads.length;
  expect(parseSignedNote(monitor.checkpointFor(larger) as string).text).toContain('\n280\n');
  expect(downloads).toHaveLength(before);
  now += 10_000;
  served = { log, size: 300 };
  monitor.checkpointFor(larger);
  monitor.checkpointFor(larger);
  await monitor.refresh();
  expect(downloads.slice(before).filter((path) => path === 'checkpoint')).toHaveLength(1);
  expect(parseSignedNote(monitor.checkpointFor(larger) as string).text).toContain('\n300\n');
  expect(contradictions).toEqual([]);
});

test('reports a client whose tree of the same size is another, once per download, but not as a contradiction of the log', async () => {
  served = { log, size: 400 };
  await monitor.refresh();
  monitor.checkpointFor(await headOf(log, 400));
  expect(otherHeads).toBe(0);
  for (let request = 0; request < 3; request++) monitor.checkpointFor(await headOf(fork, 400));
  expect(otherHeads).toBe(1);
  await monitor.refresh();
  monitor.checkpointFor(await headOf(fork, 400));
  expect(otherHeads).toBe(2);
  expect(contradictions).toEqual([]);
});
