import type { ProviderId } from '@inference/protocol';
import { NO_FILTER } from '@inference/scheduler';
import { expect, it } from 'vitest';
import type { LinkStream, StreamHandlers } from '../../../src/cluster/link/link-stream.js';
import { type Peer, PeerStream } from '../../../src/cluster/peer.js';
import { PlacementClient } from '../../../src/cluster/placement/placement-client.js';
import type { SlotRequest } from '../../../src/inference/queue/request-queue.js';
import { APPLE_TRUST_ANCHOR } from '../../../src/providers/verification/chain/trust-anchor.js';

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
    onDigest: () => {},
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
