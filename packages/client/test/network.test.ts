/** Selection, refresh and storage of candidate providers, and the checks of the transparency log. */
import type { E2eKeysetProvider } from '@inference/protocol';
import { nodeE2eCrypto } from '@inference/protocol/crypto';
import { describe, expect, test } from 'vitest';
import { orderedCandidates } from '../src/network/network.js';
import {
  createLogVerifier,
  createVerifiedFetch,
  type LoggedLeaf,
  type LogVerifier,
  memoryStore,
  type PolicyInput,
  type Store,
} from '../src/node.js';
import { hello } from './answers.js';
import { BASE_URL, MODEL, NOW, POLICY, ScriptedNetwork, scriptedProvider } from './scripted-network.js';

const DAY_MS = 86_400_000;
const PROVIDERS = Array.from({ length: 5 }, () => scriptedProvider());

interface ClientOptions {
  readonly network: ScriptedNetwork;
  readonly store?: Store;
  readonly policy?: PolicyInput;
  readonly now?: () => number;
  readonly logVerifier?: LogVerifier;
}

function client({ network, policy = POLICY, now = () => NOW, ...rest }: ClientOptions) {
  return createVerifiedFetch({ baseURL: BASE_URL, policy, fetch: network.fetch, now, ...rest });
}

async function idsOf(fetch: ReturnType<typeof client>): Promise<string[]> {
  return (await fetch.candidates(MODEL)).map(({ providerId }) => providerId);
}

function requestsTo(network: ScriptedNetwork, path: string): number {
  return network.received.filter(({ url }) => new URL(url).pathname.startsWith(path)).length;
}

describe('candidates', () => {
  test('are three, the same in every run with the same store, and others after stickyFor', async () => {
    const network = new ScriptedNetwork(hello, 5, PROVIDERS);
    const store = memoryStore();
    const first = await idsOf(client({ network, store }));
    expect(new Set(first).size).toBe(3);
    for (let run = 0; run < 3; run++) expect(await idsOf(client({ network, store }))).toEqual(first);
    const stored = JSON.parse((await store.load()) as string) as { choices: { chosen_at: number; provider_ids: string[] }[] };
    expect(stored.choices).toMatchObject([{ provider_ids: first, chosen_at: NOW }]);
    const later = memoryStore();
    await later.save(JSON.stringify({ ...stored, choices: [{ ...stored.choices[0], chosen_at: NOW - 8 * DAY_MS }] }));
    await idsOf(client({ network, store: later }));
    expect(JSON.parse((await later.load()) as string)).toMatchObject({ choices: [{ chosen_at: NOW }] });
  });

  test('that leave are replaced, and come back first', async () => {
    const store = memoryStore();
    const all = new ScriptedNetwork(hello, 5, PROVIDERS);
    const first = await idsOf(client({ network: all, store }));
    const without = new ScriptedNetwork(
      hello,
      4,
      PROVIDERS.filter(({ record }) => record.provider_id !== first[0]),
    );
    const second = await idsOf(client({ network: without, store }));
    expect(second.slice(0, 2)).toEqual(first.slice(1));
    expect(second).not.toContain(first[0]);
    expect(await idsOf(client({ network: all, store }))).toEqual(first);
  });

  test('that fail their checks are passed over', async () => {
    const [first, second, ...rest] = PROVIDERS.slice(0, 4).map((provider) => ({ ...provider, entry: { ...provider.entry } }));
    if (first === undefined || second === undefined) throw new Error('not enough providers');
    first.entry.record_sha256 = '0'.repeat(64);
    second.entry.key_id = '0'.repeat(16) as typeof second.entry.key_id;
    const ids = await idsOf(client({ network: new ScriptedNetwork(hello, 4, [first, second, ...rest]) }));
    expect(ids.sort()).toEqual(rest.map(({ record }) => record.provider_id as string).sort());
  });

  test('that fail their checks are not downloaded again for each request', async () => {
    const [good, bad] = PROVIDERS.slice(0, 2).map((provider) => ({ ...provider, entry: { ...provider.entry } }));
    if (good === undefined || bad === undefined) throw new Error('not enough providers');
    bad.entry.key_id = '0'.repeat(16) as typeof bad.entry.key_id;
    let now = NOW;
    const network = new ScriptedNetwork(hello, 2, [good, bad]);
    const fetch = client({ network, now: () => now });
    for (let request = 0; request < 3; request++) {
      expect(await idsOf(fetch)).toEqual([good.record.provider_id]);
      now += 10_000;
    }
    expect(requestsTo(network, '/v1/e2e/keyset')).toBe(1);
    expect(requestsTo(network, '/v1/e2e/records/')).toBe(2);
  });

  test('are drawn in proportion to their weights', () => {
    const entry = (provider_id: string, weight: number) => ({ provider_id, weight }) as E2eKeysetProvider;
    const entries = [entry('a', 1), entry('b', 3)];
    let state = 1;
    // Park-Miller generator: a fixed sequence.
    const randomBytes = (length: number) =>
      Uint8Array.from({ length }, () => {
        state = (state * 48_271) % 2_147_483_647;
        return state >>> 8;
      });
    let heavyFirst = 0;
    for (let draw = 0; draw < 4000; draw++) {
      const [first] = orderedCandidates({ randomBytes }, entries, null, { now: 0, stickyFor: 0 });
      if (first?.provider_id === 'b') heavyFirst += 1;
    }
    expect(heavyFirst / 4000).toBeGreaterThan(0.72);
    expect(heavyFirst / 4000).toBeLessThan(0.78);
  });

  test('of a damaged store are an error, and the store stays as it is', async () => {
    const store = memoryStore();
    await store.save('{');
    await expect(idsOf(client({ network: new ScriptedNetwork(hello, 1, PROVIDERS.slice(0, 1)), store }))).rejects.toThrow('not valid');
    expect(await store.load()).toBe('{');
  });
});

describe('the keyset', () => {
  test('is downloaded once for concurrent requests, and again after five minutes', async () => {
    let now = NOW;
    const network = new ScriptedNetwork(hello, 3, PROVIDERS.slice(0, 3));
    const fetch = client({ network, now: () => now });
    await Promise.all([fetch.ready(), fetch.ready(), fetch.candidates(MODEL)]);
    expect(requestsTo(network, '/v1/e2e/keyset')).toBe(1);
    expect(requestsTo(network, '/v1/e2e/records/')).toBe(3);
    now += 299_000;
    await fetch.candidates(MODEL);
    expect(requestsTo(network, '/v1/e2e/keyset')).toBe(1);
    now += 1000;
    await fetch.candidates(MODEL);
    expect(requestsTo(network, '/v1/e2e/keyset')).toBe(2);
    expect(requestsTo(network, '/v1/e2e/records/')).toBe(6);
  });

  test('carries no credentials', async () => {
    const network = new ScriptedNetwork(hello, 1, PROVIDERS.slice(0, 1));
    await client({ network }).ready();
    expect(network.received.map(({ init }) => [Object.keys(init.headers as object), init.credentials])).toEqual([[['accept'], 'omit']]);
  });

  test('is downloaded again for a model that it does not name', async () => {
    let now = NOW;
    const network = new ScriptedNetwork(hello, 1, PROVIDERS.slice(0, 1));
    const fetch = client({ network, now: () => now });
    await fetch.ready();
    network.keyset = (keyset) => ({ ...keyset, epoch: 8, providers: keyset.providers.map((entry) => ({ ...entry, models: ['new'] })) });
    now += 10_000;
    expect(await fetch.candidates('new')).toHaveLength(1);
    expect(requestsTo(network, '/v1/e2e/keyset')).toBe(2);
  });

  test('is downloaded again when a record changed since', async () => {
    let now = NOW;
    const provider = { ...scriptedProvider() };
    const network = new ScriptedNetwork(hello, 1, [provider]);
    const fetch = client({ network, now: () => now });
    await fetch.ready();
    const { record, entry } = scriptedProvider();
    Object.assign(provider, { record, entry });
    network.keyset = (keyset) => ({ ...keyset, epoch: 8 });
    now += 60_000;
    expect(await idsOf(fetch).catch((error: unknown) => error)).toMatchObject({ length: 1 });
    expect(requestsTo(network, '/v1/e2e/keyset')).toBe(2);
  });
});

describe('the keyset of an API key', () => {
  const post = (fetch: ReturnType<typeof client>, apiKey: string, signal?: AbortSignal) =>
    fetch(`${BASE_URL}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}` },
      body: JSON.stringify({ model: MODEL, messages: [{ role: 'user', content: 'hi' }] }),
      ...(signal === undefined ? {} : { signal }),
    });
  const apiKeyOf = (headers: Headers): string | undefined => headers.get('authorization')?.slice('Bearer '.length);
  const codeOf = (response: Response): string | null => response.headers.get('x-inference-e2e');

  test('is compared with the public one for each key, once per keyset', async () => {
    let now = NOW;
    const network = new ScriptedNetwork(hello, 1, PROVIDERS.slice(0, 1));
    const fetch = client({ network, now: () => now });
    await Promise.all([post(fetch, 'one'), post(fetch, 'one'), post(fetch, 'two')]);
    await post(fetch, 'one');
    await post(fetch, 'two');
    expect(requestsTo(network, '/v1/e2e/keyset'), 'public, and once for each key').toBe(3);
    now += 300_000;
    network.now += 300_000;
    network.keyset = (keyset) => ({ ...keyset, epoch: 8 });
    await post(fetch, 'two');
    expect(requestsTo(network, '/v1/e2e/keyset')).toBe(5);
  });

  test('is refused as targeted where it differs, also while the public one is cached for other keys', async () => {
    const network = new ScriptedNetwork(hello, 1, PROVIDERS.slice(0, 1));
    network.keyset = (keyset, headers) => (apiKeyOf(headers) === 'victim' ? { ...keyset, issued_at: keyset.issued_at - 1 } : keyset);
    const fetch = client({ network });
    expect(codeOf(await post(fetch, 'other'))).toBe('verified');
    for (let request = 0; request < 2; request++) expect(codeOf(await post(fetch, 'victim'))).toBe('targeted');
    expect(codeOf(await post(fetch, 'other'))).toBe('verified');
    expect(network.sealedRequests).toHaveLength(2);
  });

  test('may be of an epoch that was just published, but not of another one for ever', async () => {
    const network = new ScriptedNetwork(hello, 1, PROVIDERS.slice(0, 1));
    let publicEpoch = 7;
    network.keyset = (keyset, headers) => ({ ...keyset, epoch: headers.has('authorization') ? 8 : publicEpoch++ });
    expect(codeOf(await post(client({ network }), 'one'))).toBe('verified');
    let epoch = 100;
    network.keyset = (keyset) => ({ ...keyset, epoch: epoch++ });
    const fetch = client({ network });
    for (let request = 0; request < 3; request++) expect(codeOf(await post(fetch, 'one'))).toBe('verified');
    expect(codeOf(await post(fetch, 'one'))).toBe('targeted');
  });

  test('must not change within an epoch, with or without a key', async () => {
    let now = NOW;
    const network = new ScriptedNetwork(hello, 1, PROVIDERS.slice(0, 1));
    const fetch = client({ network, now: () => now });
    await fetch.ready();
    now += 300_000;
    network.now += 1000;
    await expect(fetch.ready()).rejects.toMatchObject({ name: 'E2ERefused', code: 'targeted' });
  });

  test.each(['/v1/e2e/keyset', '/v1/e2e/records/'])(
    'an abort ends the wait for %s at once, and the download goes on for others',
    async (path) => {
      const network = new ScriptedNetwork(hello, 1, PROVIDERS.slice(0, 1));
      let release = (): void => {};
      const released = new Promise<void>((resolve) => (release = resolve));
      let onAsked = (): void => {};
      const asked = new Promise<void>((resolve) => (onAsked = resolve));
      const fetch = createVerifiedFetch({
        baseURL: BASE_URL,
        policy: POLICY,
        now: () => NOW,
        fetch: async (input, init) => {
          if (new URL(input).pathname.startsWith(path)) {
            onAsked();
            await released;
          }
          return network.fetch(input, init);
        },
      });
      const leaving = new AbortController();
      const reason = new Error('the caller left');
      const left = post(fetch, 'one', leaving.signal);
      const staying = post(fetch, 'one');
      await asked;
      leaving.abort(reason);
      await expect(left).rejects.toBe(reason);
      release();
      expect(codeOf(await staying)).toBe('verified');
      expect(requestsTo(network, path)).toBe(path === '/v1/e2e/keyset' ? 2 : 1);
    },
  );
});

describe('the log', () => {
  const required: PolicyInput = { ...POLICY, log: 'required' };
  const network = () => {
    const scripted = new ScriptedNetwork(hello, 1, [{ ...(PROVIDERS[0] as (typeof PROVIDERS)[0]) }]);
    scripted.keyset = (keyset) => ({
      ...keyset,
      providers: keyset.providers.map((provider) => ({ ...provider, log_index: 5 })),
      log: { checkpoint: 'note', leaf_index: 1, inclusion_proof: [] },
    });
    return scripted;
  };
  const root = new Uint8Array(32).fill(1);
  /** A log that has every entry and agrees with every checkpoint. */
  const agreeing = { includes: async () => true, compareCheckpoint: async () => ({ ok: true }) as const };
  const head = { size: 9, root: '01'.repeat(32) };
  const post = (fetch: ReturnType<typeof client>) =>
    fetch(`${BASE_URL}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({ model: MODEL, messages: [{ role: 'user', content: 'hi' }] }),
    });

  test('is verified with the stored checkpoint, and its head travels in the request', async () => {
    const calls: { leaf: LoggedLeaf; stored: string | null }[] = [];
    const logVerifier = createLogVerifier<string>({
      ...agreeing,
      verify: (leaf, stored) => {
        calls.push({ leaf, stored });
        return Promise.resolve({ ok: true, checkpoint: { size: 9, root }, stored: 'checkpoint 9' });
      },
    });
    const store = memoryStore();
    const scripted = network();
    for (let run = 0; run < 2; run++) {
      expect((await post(client({ network: scripted, policy: required, store, logVerifier }))).status).toBe(200);
    }
    expect(calls.map(({ stored }) => stored)).toEqual([null, 'checkpoint 9']);
    expect(calls[0]?.leaf).toMatchObject({ checkpoint: 'note', leafIndex: 1 });
    expect(JSON.parse(new TextDecoder().decode(calls[0]?.leaf.entry))).toMatchObject({ v: 1, kind: 'keyset', epoch: 7 });
    expect(scripted.opened[0]?.context.log).toEqual(head);
  });

  test.each(['stale', 'split_view'] as const)('is refused as %s', async (code) => {
    const logVerifier = createLogVerifier({ ...agreeing, verify: () => Promise.resolve({ ok: false, code, reason: 'Inconsistent' }) });
    await expect(client({ network: network(), policy: required, logVerifier }).ready()).rejects.toMatchObject({ name: 'E2ERefused', code });
  });

  test('dates a provider by the first tree that this client accepted with it', async () => {
    let now = NOW;
    let size = 5;
    const logVerifier = createLogVerifier<null>({
      ...agreeing,
      verify: () => Promise.resolve({ ok: true, checkpoint: { size, root }, stored: null }),
    });
    const store = memoryStore();
    const policy = { ...required, minLogAge: 60_000 };
    const candidates = () => client({ network: network(), policy, store, logVerifier, now: () => now }).candidates(MODEL);
    await expect(candidates()).rejects.toMatchObject({ code: 'targeted', message: expect.stringContaining('minLogAge') as string });
    // The provider's entry has index 5 in the log, so the tree must have at least 6 entries.
    size = 6;
    now -= 7 * 3_600_000;
    const early = memoryStore();
    await expect(
      client({ network: olderKeyset(now), policy, store: early, logVerifier, now: () => now }).candidates(MODEL),
    ).rejects.toMatchObject({ name: 'E2ERefused' });
    now = NOW;
    expect(await client({ network: network(), policy, store: early, logVerifier, now: () => now }).candidates(MODEL)).toHaveLength(1);
  });

  /** The network with a keyset of an earlier time, when the keys of the record were not valid yet. */
  function olderKeyset(now: number): ScriptedNetwork {
    const scripted = network();
    const { keyset } = scripted;
    scripted.keyset = (value, headers) => ({ ...keyset(value, headers), issued_at: now });
    return scripted;
  }
});

test('both implementations of the primitives agree', async () => {
  const { nobleE2eCrypto } = await import('../src/crypto/noble-crypto.js');
  const [key, nonce, aad, plaintext] = [32, 12, 9, 700].map((length) => new Uint8Array(length).fill(length)) as [
    Uint8Array,
    Uint8Array,
    Uint8Array,
    Uint8Array,
  ];
  const [noble, node] = [nobleE2eCrypto, nodeE2eCrypto];
  const sealed = noble.aesGcmSeal(key, nonce, aad, plaintext);
  expect(sealed).toEqual(node.aesGcmSeal(key, nonce, aad, plaintext));
  expect(noble.aesGcmOpen(key, nonce, aad, sealed)).toEqual(plaintext);
  sealed[0] = (sealed[0] as number) ^ 1;
  expect(noble.aesGcmOpen(key, nonce, aad, sealed)).toBeNull();
  expect(noble.aesGcmOpen(key, nonce, aad, sealed.subarray(0, 15))).toBeNull();
  expect(noble.hmacSha256(key, aad, plaintext)).toEqual(node.hmacSha256(key, aad, plaintext));
  expect(noble.sha256(plaintext)).toEqual(node.sha256(plaintext));
  const [a, b] = [noble.generateX25519(), node.generateX25519()];
  expect(a.agree(b.publicKey)).toEqual(b.agree(a.publicKey));
  expect(a.agree(new Uint8Array(32))).toBeNull();
  expect(a.agree(new Uint8Array(31))).toBeNull();
});
