import { rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ProviderId, TrustLevel } from '@inference/protocol';
import { NO_FILTER } from '@inference/scheduler';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LinkStream, StreamHandlers } from '../../../src/cluster/link/link-stream.js';
import { type Peer, PeerStream } from '../../../src/cluster/peer.js';
import { PlacementClient } from '../../../src/cluster/placement/placement-client.js';
import { describeProvider, type ProviderDescription } from '../../../src/cluster/placement/provider-description.js';
import type { SlotRequest } from '../../../src/inference/queue/request-queue.js';
import { APPLE_TRUST_ANCHOR, type TrustAnchor } from '../../../src/providers/verification/chain/trust-anchor.js';
import { DeviceWorld } from '../../providers/verification/device-fixtures.js';
import { type Harness, startCoordinator, until } from '../../support/harness.js';

const REQUEST: SlotRequest = {
  model: 'model',
  accountId: 'account',
  providerSerial: null,
  exclude: new Set<ProviderId>(),
  trustFloor: null,
  work: { promptTokens: 10, completionTokens: 20 },
  promptPrefixes: [],
};

const PLACED = {
  type: 'placed',
  provider: {
    provider_id: 'a'.repeat(32),
    session_id: 'session',
    key_id: 'b'.repeat(16),
    offer: { id: 'model', model_type: 'text', display_name: 'Model', quantization: '8bit', context_length: 4096 },
    used_slots: 1,
    trust_level: 'self_signed',
    is_attested: true,
    is_proven: false,
    max_plausible_tps: null,
    owner_account_id: null,
  },
  estimate: { firstTokenMs: 1, completionMs: 2, costMs: 3 },
  why: 'local',
};

/** A client of one peer, which answers every stream with `reply`. */
function clientOf(reply: (handlers: StreamHandlers) => void) {
  const outcomes: string[] = [];
  const calls: string[] = [];
  const peer: Peer = {
    id: 'far',
    request: async (kind) => {
      calls.push(kind);
      return new Uint8Array();
    },
    openStream: () =>
      PeerStream.open((handlers): LinkStream => {
        queueMicrotask(() => reply(handlers));
        return {
          peer: 'far',
          kind: 'placement',
          isOpen: true,
          queuedBytes: 0,
          send: () => true,
          sendControl: () => {},
          close: () => calls.push('close'),
          abort: (code) => calls.push(`abort ${code}`),
        };
      }),
  };
  const client = new PlacementClient({
    findPeer: (id) => (id === 'far' ? peer : null),
    rules: {
      allowSimulatedEnclave: true,
      anchor: APPLE_TRUST_ANCHOR,
      limits: { maxChallengeAgeMs: 1, maxManagementAgeMs: 1 },
      now: () => 0,
    },
    onOutcome: (outcome) => outcomes.push(outcome),
    digestReceiver: () => () => {},
    now: () => 0,
  });
  return { client, outcomes, calls };
}

const says =
  (message: unknown) =>
  (handlers: StreamHandlers): void =>
    handlers.onMessage(Buffer.from(JSON.stringify(message)), true);

it.each([
  ['a busy owner', says({ type: 'refused', reason: 'busy', retry_after_ms: null }), 'timeout', null, 'busy', ['close']],
  ['a full queue', says({ type: 'refused', reason: 'queue_full', retry_after_ms: 700 }), 'queue_full', 700, 'refused', ['close']],
  ['a lost link', (handlers: StreamHandlers) => handlers.onClosed({ kind: 'closed' }), 'none_routable', null, 'lost', []],
  ['an invalid reply', says({ type: 'placed' }), 'none_routable', null, 'lost', ['abort bad_message']],
  ['a provider without a description', says(PLACED), 'none_routable', null, 'unverified', ['describe', 'close']],
] as const)('is refused by %s', async (_what, reply, reason, retryAfterMs, outcome, expected) => {
  const { client, outcomes, calls } = clientOf(reply);
  expect(await client.ask('far', REQUEST, 0, null)).toEqual({ kind: 'refused', reason, retryAfterMs });
  expect(outcomes).toEqual([outcome]);
  expect(calls).toEqual(expected);
});

it('takes no slot on a provider that is no candidate, from an owner that does not know candidates', async () => {
  const { client, outcomes, calls } = clientOf(says(PLACED));
  const candidates = new Set(['c'.repeat(32) as ProviderId]);
  expect(await client.ask('far', { ...REQUEST, candidates }, 0, null)).toMatchObject({ kind: 'refused', reason: 'none_routable' });
  expect(outcomes).toEqual(['unverified']);
  expect(calls).toEqual(['close']);
});

it('takes no slot on an excluded provider, from an owner that ignores exclusions', async () => {
  const { client, outcomes, calls } = clientOf(says(PLACED));
  const exclude = new Set([PLACED.provider.provider_id as ProviderId]);
  expect(await client.ask('far', { ...REQUEST, exclude }, 0, null)).toMatchObject({ kind: 'refused', reason: 'none_routable' });
  expect([outcomes, calls]).toEqual([['unverified'], ['close']]);
});

it.each([
  ['an ignored provider', { ignoredIds: new Set([PLACED.provider.provider_id as ProviderId]) }],
  ['another quantization', { quantizations: new Set(['4bit']) }],
])('takes no slot on %s, from an owner that does not know filters', async (_what, filter) => {
  const { client, outcomes, calls } = clientOf(says(PLACED));
  const placement = await client.ask('far', { ...REQUEST, filter: { ...NO_FILTER, ...filter } }, 0, null);
  expect(placement).toMatchObject({ kind: 'refused', reason: 'none_routable' });
  expect([outcomes, calls]).toEqual([['unverified'], ['close']]);
});

it('closes the stream when the request is aborted, which frees the slot at the owner', async () => {
  const { client, calls } = clientOf(() => {});
  const controller = new AbortController();
  const placement = client.ask('far', REQUEST, 60_000, controller.signal);
  controller.abort();
  expect(await placement).toEqual({ kind: 'refused', reason: 'aborted', retryAfterMs: null });
  expect(calls).toEqual(['close']);
});

it('asks no peer that has left', async () => {
  const { client, outcomes } = clientOf(() => {});
  expect(await client.ask('gone', REQUEST, 0, null)).toMatchObject({ reason: 'none_routable' });
  expect(await client.claimants('gone', 'SERIAL')).toEqual([]);
  expect(outcomes).toEqual([]);
});

interface Placeable {
  readonly provider_id: ProviderId;
  readonly session_id: string;
  readonly key_id: string;
  readonly description: ProviderDescription;
}

/** Ids and present description of a provider of `harness`. */
function placeableOf({ app }: Harness, providerId: ProviderId): Placeable {
  const snapshot = app.providers.snapshot(providerId);
  const description = snapshot === null ? null : describeProvider(snapshot);
  if (snapshot?.key == null || description === null) throw new Error('the provider is not attested');
  return { provider_id: providerId, session_id: snapshot.sessionId, key_id: snapshot.key.keyId, description };
}

type Claim = Partial<Placeable> & { readonly trust_level?: TrustLevel };

/** Client of peers that know the descriptions of `placeables`. `ask` lets a peer place on what it claims to be a provider. */
function clientOfOwners(
  placeables: () => readonly Placeable[],
  { anchor = APPLE_TRUST_ANCHOR, now = Date.now }: { readonly anchor?: TrustAnchor; readonly now?: () => number } = {},
) {
  let claim: Claim = {};
  const described: string[] = [];
  const peerOf = (id: string): Peer => ({
    id,
    request: async (_kind, payload) => {
      const { session_id } = JSON.parse(Buffer.from(payload).toString());
      described.push(session_id);
      return Buffer.from(JSON.stringify(placeables().find((placeable) => placeable.session_id === session_id)?.description ?? null));
    },
    openStream: () =>
      PeerStream.open((handlers): LinkStream => {
        const { description: _, ...ids } = claim;
        queueMicrotask(() => says({ ...PLACED, provider: { ...PLACED.provider, ...ids } })(handlers));
        return {
          peer: id,
          kind: 'placement',
          isOpen: true,
          queuedBytes: 0,
          send: () => true,
          sendControl: () => {},
          close: () => {},
          abort: () => {},
        };
      }),
  });
  const limits = { maxChallengeAgeMs: 3_600_000, maxManagementAgeMs: 3_600_000 };
  const client = new PlacementClient({
    findPeer: peerOf,
    rules: { allowSimulatedEnclave: true, anchor, limits, now: Date.now },
    onOutcome: () => {},
    digestReceiver: () => () => {},
    now,
  });
  const ask = async (claimed: Claim, request: Partial<SlotRequest> = {}, peerId = 'far') => {
    claim = claimed;
    const placement = await client.ask(peerId, { ...REQUEST, ...request }, 0, null);
    return placement.kind === 'placed' ? placement.slot.provider : null;
  };
  return { ask, client, described };
}

describe('a faulty owner that places on another provider than requested', () => {
  let harness: Harness;
  let named: Placeable;
  let other: Placeable;

  beforeAll(async () => {
    harness = await startCoordinator();
    const connect = async (serial: string): Promise<Placeable> => placeableOf(harness, (await harness.provider({ serial })).providerId);
    [named, other] = [await connect('NAMED00001'), await connect('OTHER00001')];
  });
  afterAll(() => harness.close());

  it('gets no request under the name of the requested one, even if the other is known', async () => {
    const { ask } = clientOfOwners(() => [named, other]);
    expect((await ask(other))?.registration.identity.providerId).toBe(other.provider_id);
    const disguised = { ...other, provider_id: named.provider_id };
    expect(await ask(disguised)).toBeNull();
    expect(await ask(disguised, { candidates: new Set([named.provider_id]) })).toBeNull();
    expect((await ask(named))?.registration.identity.providerId).toBe(named.provider_id);
  });

  it('cannot change what another owner reported about its provider', async () => {
    const { ask, client } = clientOfOwners(() => [named, other]);
    const ofFar = await ask(other);
    const ofThird = await ask(other, {}, 'third');
    expect([ofFar, ofThird].map((provider) => provider !== null)).toEqual([true, true]);
    expect(ofThird).not.toBe(ofFar);
    // Both report the same session, so neither entry is older.
    expect([ofFar?.isReplaced, ofThird?.isReplaced]).toEqual([false, false]);
    expect(client.ownerOf(other.provider_id)).toBe('far');
  });

  it.each([
    ['id', () => ({ providerId: named.provider_id })],
    ['serial number', () => ({ providerSerial: 'NAMED00001' })],
  ])('gets no request that names a provider by its %s', async (_what, request) => {
    const { ask } = clientOfOwners(() => [named, other]);
    expect(await ask(other, request())).toBeNull();
    expect((await ask(named, request()))?.registration.identity.providerId).toBe(named.provider_id);
  });

  it('gets no request that requires more trust than the evidence proves', async () => {
    const { ask } = clientOfOwners(() => [named, other]);
    expect(await ask(other, { trustFloor: 'hardware' })).toBeNull();
  });
});

it('shares one object between the first placements on a connection, even if they overlap', async () => {
  const harness = await startCoordinator();
  try {
    const placeable = placeableOf(harness, (await harness.provider()).providerId);
    const { ask } = clientOfOwners(() => [placeable]);
    const [first, second] = await Promise.all([ask(placeable), ask(placeable)]);
    expect(first).not.toBeNull();
    expect(second).toBe(first);
    expect(first?.isReplaced).toBe(false);
  } finally {
    await harness.close();
  }
});

it('keeps the newest session of a provider although a peer replays the description of an earlier one', async () => {
  const harness = await startCoordinator();
  try {
    const { providerId, enclave } = await harness.provider();
    const ended = placeableOf(harness, providerId);
    const connectedAt = Date.now();
    await until(() => Date.now() > connectedAt);
    await harness.provider({ enclave });
    const current = placeableOf(harness, providerId);
    const { ask, client } = clientOfOwners(() => [ended, current]);
    const newest = await ask(current);
    const replayed = await ask(ended, {}, 'third');
    expect([newest?.isReplaced, replayed?.isReplaced]).toEqual([false, true]);
    expect(client.ownerOf(providerId)).toBe('far');

    const { ask: askInOrder, client: inOrder } = clientOfOwners(() => [ended, current]);
    const first = await askInOrder(ended, {}, 'third');
    const second = await askInOrder(current);
    expect([first?.isReplaced, second?.isReplaced]).toEqual([true, false]);
    expect(inOrder.ownerOf(providerId)).toBe('far');
  } finally {
    await harness.close();
  }
});

describe('a provider that the owner reports with hardware trust', () => {
  const world = new DeviceWorld(Date.now() - 120_000);
  const anchorFile = join(tmpdir(), `simulated-root-of-placement-${process.pid}.pem`);
  const floor = { trustFloor: 'hardware' } as const;
  let harness: Harness;
  beforeAll(async () => {
    writeFileSync(anchorFile, world.authority.rootPem);
    harness = await startCoordinator({ config: { simulatedDeviceAuthority: anchorFile } });
  });
  afterAll(async () => {
    await harness.close();
    rmSync(anchorFile);
  });

  it('is described again, once its evidence may prove the level', async () => {
    const { providerId, enclave } = await harness.provider({ serial: 'SM0A1B2C3D' });
    let placeable = placeableOf(harness, providerId);
    const { ask, described } = clientOfOwners(() => [placeable], { anchor: world.anchor });
    const before = await ask(placeable);
    expect(before?.trustLevel).toBe('self_signed');
    harness.app.providers.setDeviceEvidence(providerId, world.evidence(enclave.publicKey, {}, Date.now() - 60_000));
    await until(() => harness.app.providers.snapshot(providerId)?.trust.level === 'hardware');
    placeable = placeableOf(harness, providerId);
    const risen = await ask({ ...placeable, trust_level: 'hardware' }, floor);
    expect(risen?.trustLevel).toBe('hardware');
    expect(risen).toBe(before);
    expect(described).toHaveLength(2);
  });

  it('is described again at most every few seconds while the evidence proves less, and serves other requests', async () => {
    const { providerId } = await harness.provider();
    const placeable = placeableOf(harness, providerId);
    let isKnown = true;
    let at = Date.now();
    const { ask, described } = clientOfOwners(() => (isKnown ? [placeable] : []), { now: () => at });
    const claim = { ...placeable, trust_level: 'hardware' } as const;
    for (let count = 0; count < 4; count++) expect(await ask(claim, floor)).toBeNull();
    expect(described).toHaveLength(2);
    at += 3000;
    isKnown = false;
    for (let count = 0; count < 4; count++) expect((await ask(claim))?.trustLevel).toBe('self_signed');
    expect(described).toHaveLength(3);
  });
});
