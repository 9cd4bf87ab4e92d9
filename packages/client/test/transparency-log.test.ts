/** Keysets, providers and checkpoints of providers in a transparency log: growth is accepted, other histories are refused. */
import {
  type E2eKeyset,
  encodeLogEntry,
  equalBytes,
  keysetLeafBytes,
  keysetLogEntry,
  parseTilePath,
  providerLogEntry,
  tileWidth,
  toBase64,
} from '@inference/protocol';
import { sha256 } from '@inference/protocol/crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { TestLog, TestSigner } from '../../protocol/test/log/log-fixture.js';
import type { Fetch } from '../src/network/download.js';
import { createVerifiedFetch, memoryStore, type PolicyInput, type Store, verdictOf } from '../src/node.js';
import { hello } from './answers.js';
import { BASE_URL, MODEL, NOW, POLICY, ScriptedNetwork, scriptedProvider } from './scripted-network.js';

const HOUR_MS = 3_600_000;
const PROVIDER = scriptedProvider();
const [first, second] = [6, 7].map((seed) => new TestSigner(`witness-${seed}.example`, seed, 'cosignature')) as [TestSigner, TestSigner];

const entryOf = ({ enclaveKey }: typeof PROVIDER): Uint8Array => encodeLogEntry(providerLogEntry(sha256, enclaveKey.x963));

/** Entries of other keysets. Another `variant` gives a conflicting history. */
const entriesOf = (count: number, variant = 0): Uint8Array[] =>
  Array.from({ length: count }, (_, epoch) => encodeLogEntry(keysetLogEntry(sha256, epoch, Uint8Array.of(epoch, variant))));

/** The log that the coordinator serves. */
class ServedLog {
  /** Entries before the keyset's entry. */
  history = [...entriesOf(300), entryOf(PROVIDER)];
  /** Leaf index in the keyset's entry of the provider; null: the correct index, if the history contains the provider. */
  namedIndex: number | null = null;
  signedAt = NOW;
  witnesses: readonly TestSigner[] = [];
  cosignedAt = NOW;
  /** Whether the log contains the served keyset. */
  isLogged = true;
  tile: (bytes: Uint8Array<ArrayBuffer>) => Response = (bytes) => new Response(bytes);
  tileCount = 0;
  log = new TestLog([]);

  async withProof(keyset: E2eKeyset): Promise<E2eKeyset> {
    const index = this.namedIndex ?? this.history.findIndex((entry) => equalBytes(entry, entryOf(PROVIDER)));
    const providers = keyset.providers.map((provider) => (index < 0 ? provider : { ...provider, log_index: index }));
    const served = { ...keyset, providers };
    const logged = this.isLogged ? served : { ...served, epoch: keyset.epoch + 1 };
    this.log = new TestLog([...this.history, encodeLogEntry(keysetLogEntry(sha256, logged.epoch, keysetLeafBytes(logged)))]);
    const size = this.log.entries.length;
    const checkpoint = this.log.checkpoint(size, this.signedAt, this.witnesses, this.cosignedAt);
    const { inclusionProof } = await this.log.leaf(size - 1, size, checkpoint);
    return { ...served, log: { checkpoint, leaf_index: size - 1, inclusion_proof: inclusionProof.map(toBase64) } };
  }

  async read(path: string): Promise<Response> {
    const tile = parseTilePath(path);
    if (tile === null || tileWidth(tile.level, tile.index, this.log.entries.length) < tile.width)
      return new Response('not found', { status: 404 });
    this.tileCount++;
    return this.tile(new Uint8Array(await this.log.readTile(tile)));
  }
}

let served: ServedLog;
let network: ScriptedNetwork;
let store: Store;

beforeEach(() => {
  served = new ServedLog();
  network = new ScriptedNetwork(hello, 1, [PROVIDER]);
  store = memoryStore();
});

const fetchWithLog: Fetch = async (input, init) => {
  const { pathname } = new URL(input);
  if (pathname.startsWith('/e2e/log/')) return served.read(pathname.slice('/e2e/log/'.length));
  const response = await network.fetch(input, init);
  return pathname === '/v1/e2e/keyset' ? Response.json(await served.withProof((await response.json()) as E2eKeyset)) : response;
};

/** A new client with the stored state of earlier clients. */
function client(policy: PolicyInput = {}) {
  const required = { ...POLICY, log: 'required' as const, logKey: served.log.signer.verifierKey, ...policy };
  return createVerifiedFetch({ baseURL: `${BASE_URL}/v1`, policy: required, store, fetch: fetchWithLog, now: () => NOW });
}

function post(fetch = client(), stream = false): Promise<Response> {
  const body = JSON.stringify({ model: MODEL, stream, messages: [{ role: 'user', content: 'hi' }] });
  return fetch(`${BASE_URL}/v1/chat/completions`, { method: 'POST', body });
}

test('a log that grows is accepted, and its head travels in the request', async () => {
  await client().ready();
  expect(served.tileCount).toBe(0);
  const before = served.log.entries;
  served.history = [...before, ...entriesOf(250, 1)];
  const response = await post();
  expect(response.status).toBe(200);
  expect(served.tileCount).toBeGreaterThan(0);
  expect(network.opened[0]?.context.log?.size).toBe(before.length + 251);
});

test.each<[string, string, () => void]>([
  ['a log that was rolled back', 'split_view', () => Object.assign(served, { history: entriesOf(100), signedAt: NOW + 1000 })],
  ['a fork', 'split_view', () => Object.assign(served, { history: entriesOf(400, 1) })],
  ['a fork of the same length', 'split_view', () => Object.assign(served, { history: entriesOf(301, 1) })],
  ['an old checkpoint', 'stale', () => Object.assign(served, { signedAt: NOW - 2 * HOUR_MS })],
  ['a checkpoint of the future', 'split_view', () => Object.assign(served, { signedAt: NOW + HOUR_MS })],
  ['a keyset that is not in the log', 'split_view', () => Object.assign(served, { isLogged: false })],
  ['a log without tiles', 'split_view', () => growWith(() => new Response('gone', { status: 404 }))],
  ['a tile of another length', 'split_view', () => growWith((bytes) => new Response(bytes.slice(1)))],
  ['a tile of another tree', 'split_view', () => growWith((bytes) => new Response(bytes.map((byte) => byte ^ 1)))],
  ['a tile without end', 'coordinator_said', () => growWith(() => new Response(new Uint8Array(9000)))],
])('%s is refused as %s', async (_name, code, change) => {
  await client().ready();
  const stored = await store.load();
  change();
  await expect(client().ready()).rejects.toMatchObject({ name: 'E2ERefused', code });
  expect(await store.load()).toBe(stored);
});

function growWith(tile: ServedLog['tile']): void {
  Object.assign(served, { history: [...served.log.entries, ...entriesOf(9, 1)], tile });
}

test('a log of another key is refused', async () => {
  const { verifierKey } = new TestSigner('log.example/e2e/log', 9, 'ed25519');
  await expect(client({ logKey: verifierKey }).ready()).rejects.toMatchObject({ code: 'split_view' });
});

test('witnesses must have signed lately, by default their majority', async () => {
  const logWitnesses = [first.verifierKey, second.verifierKey];
  served.witnesses = [first];
  await expect(client({ logWitnesses }).ready()).rejects.toMatchObject({ code: 'split_view' });
  await client({ logWitnesses, logQuorum: 1 }).ready();
  served.witnesses = [first, second];
  await client({ logWitnesses }).ready();
  served.cosignedAt = NOW - 2 * HOUR_MS;
  await expect(client({ logWitnesses }).ready()).rejects.toMatchObject({ code: 'stale' });
});

test('a stored state that is no checkpoint is not replaced', async () => {
  await client().ready();
  const state = JSON.parse((await store.load()) as string) as { log: string };
  const log = JSON.stringify({ ...(JSON.parse(state.log) as object), stored: 'checkpoint' });
  await store.save(JSON.stringify({ ...state, log }));
  await expect(client().ready()).rejects.toThrow('stored checkpoint');
});

test("a provider's entry is proved from tiles, once for a client", async () => {
  const fetch = client();
  expect(await fetch.candidates(MODEL)).toHaveLength(1);
  const tiles = served.tileCount;
  expect(tiles).toBeGreaterThan(0);
  expect(await fetch.candidates(MODEL)).toHaveLength(1);
  expect(served.tileCount).toBe(tiles);
});

test.each<[string, string, () => void]>([
  ['the leaf of a keyset', 'split_view', () => Object.assign(served, { namedIndex: 5 })],
  ['a leaf outside the tree', 'split_view', () => Object.assign(served, { namedIndex: 1_000_000 })],
  [
    'the leaf of another provider',
    'split_view',
    () => Object.assign(served, { history: [...entriesOf(9), entryOf(scriptedProvider())], namedIndex: 9 }),
  ],
  ['no leaf', 'split_view', () => Object.assign(served, { history: entriesOf(300) })],
  [
    'a leaf of a tree whose tiles are missing',
    'split_view',
    () => Object.assign(served, { tile: () => new Response(null, { status: 404 }) }),
  ],
  ['a leaf with tiles of another tree', 'split_view', () => Object.assign(served, { tile: altered })],
  [
    'a leaf whose tiles cannot be read now',
    'coordinator_said',
    () => Object.assign(served, { tile: () => new Response(null, { status: 503 }) }),
  ],
])('a provider for whom the keyset names %s is refused as %s', async (_name, code, change) => {
  change();
  const fetch = client();
  await fetch.ready();
  await expect(fetch.candidates(MODEL)).rejects.toMatchObject({ name: 'E2ERefused', code });
  expect(network.sealedRequests).toEqual([]);
});

function altered(bytes: Uint8Array<ArrayBuffer>): Response {
  return new Response(bytes.map((byte) => byte ^ 1));
}

describe('the checkpoint in an answer', () => {
  /** Sets the checkpoint that the provider reports in its response. Computed after the keyset was served. */
  function reporting(checkpoint: () => string): void {
    network.answer = (opened) => {
      network.changes = { head: { log_checkpoint: checkpoint() } };
      return hello(opened);
    };
  }

  const codeOf = (response: Response): string | null => response.headers.get('x-inference-e2e');
  const fork = (): TestLog => new TestLog([...served.history.slice(0, 200), ...entriesOf(200, 1)]);

  test.each<[string, () => string]>([
    ['of the same tree', () => served.log.checkpoint(served.log.entries.length, NOW)],
    ['of an earlier tree, of any age', () => served.log.checkpoint(17, 0)],
    ['of a later tree', () => grown().checkpoint(400, NOW)],
  ])('%s is accepted', async (_name, checkpoint) => {
    reporting(checkpoint);
    expect(codeOf(await post())).toBe('verified');
  });

  /** Appends entries to the served log. The client already has the smaller tree head. */
  function grown(): TestLog {
    served.log = new TestLog([...served.log.entries, ...entriesOf(200, 2)]);
    return served.log;
  }

  /** Replaces the served log by the fork. The client already has the tree head of the original. */
  function servedFork(): TestLog {
    served.log = fork();
    return served.log;
  }

  test.each<[string, () => string]>([
    ['of another tree of the same size', () => fork().checkpoint(served.log.entries.length, NOW)],
    ['of an earlier tree of another history', () => fork().checkpoint(250, NOW)],
    ['of a later tree that the coordinator hides', () => fork().checkpoint(400, NOW)],
    ['of a later tree of another history', () => servedFork().checkpoint(400, NOW)],
    ['that the log did not sign', () => served.log.checkpoint(17, NOW).replace('\n17\n', '\n18\n')],
    ['that is none', () => 'checkpoint'],
  ])('%s is refused as split_view, plain and streamed', async (_name, checkpoint) => {
    reporting(checkpoint);
    const plain = await post();
    expect(codeOf(plain)).toBe('split_view');
    expect(await plain.text()).not.toContain('Hello');
    const stream = await post(client(), true);
    expect(codeOf(stream)).toBe('pending');
    await expect(stream.text()).rejects.toMatchObject({ name: 'E2ERefused', code: 'split_view' });
    expect(verdictOf(stream)).toMatchObject({ state: 'refused', refusal: { code: 'split_view' } });
  });

  test('ends the stream with the error of a failed download, which is not called a cancellation', async () => {
    reporting(() => {
      served.tile = () => {
        throw new TypeError('fetch failed');
      };
      return served.log.checkpoint(17, 0);
    });
    const stream = await post(client(), true);
    await expect(stream.text()).rejects.toThrow('fetch failed');
    const verdict = verdictOf(stream);
    expect(verdict).toMatchObject({ state: 'refused', refusal: { code: 'truncated', cause: { message: 'fetch failed' } } });
    expect(verdict?.state === 'refused' && verdict.refusal.message).toBe('The answer could not be verified.');
  });

  test('is compared once for a tree head, and not by clients that follow no log', async () => {
    reporting(() => served.log.checkpoint(17, 0));
    const fetch = client();
    await post(fetch);
    const tiles = served.tileCount;
    await post(fetch);
    expect(served.tileCount).toBe(tiles);
    reporting(() => 'checkpoint');
    const unlogged = createVerifiedFetch({ baseURL: BASE_URL, policy: POLICY, fetch: fetchWithLog, now: () => NOW });
    expect(codeOf(await post(unlogged))).toBe('verified');
  });
});
