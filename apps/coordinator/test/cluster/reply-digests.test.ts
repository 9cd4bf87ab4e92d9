/** A `busy` reply contains the current digest of the model, so that the next request asks another coordinator. */
import { EMPTY_DIGEST, encodeDigest, type ModelDigest } from '@inference/scheduler';
import { describe, expect, it } from 'vitest';
import { encodeMessage } from '../../src/cluster/json-message.js';
import { CLUSTER_VERSION, encodeHeartbeat, encodeModel } from '../../src/cluster/membership/heartbeat.js';
import { Membership } from '../../src/cluster/membership/membership.js';
import { parseOwnerMessage } from '../../src/cluster/placement/placement-messages.js';

const DIGEST: ModelDigest = { ...EMPTY_DIGEST, serving: 1, totalSlots: 4, maxContextTokens: 8192 };
const FULL = { ...DIGEST, queueLength: 7 };

/** A coordinator's `Membership` with one known peer, `peer`, which serves the model `m`. */
function known(): Membership {
  let receive: (subject: string, bytes: Uint8Array) => void = () => {};
  const membership = new Membership({
    self: 'self',
    broadcast: {
      publish: () => {},
      subscribe: (_, handler) => {
        receive = handler;
        return () => {};
      },
    },
    models: () => [],
    providers: () => 0,
    isDraining: () => false,
    requestModels: async () => new Uint8Array(),
    events: { joined: () => {}, left: () => {}, changed: () => {}, clockDiffers: () => {}, refused: () => {} },
    now: () => 1000,
  });
  const heartbeat = { version: CLUSTER_VERSION, epoch: '0123456789abcdef', sequence: 1, at: 1000, draining: false, goodbye: false };
  const models = [encodeModel({ id: 'm', type: 'text', images: [], vision: null, digest: DIGEST })];
  receive('fleet.digest.peer', encodeHeartbeat({ ...heartbeat, providers: 1, models }));
  membership.close();
  return membership;
}

const queueOf = (membership: Membership): number | undefined => membership.digests.of('m').get('peer')?.digest.queueLength;

describe('the digest of a reply', () => {
  it('replaces the published one', () => {
    const membership = known();
    expect(queueOf(membership)).toBe(0);
    membership.digestReceiver('peer', 'm')(encodeDigest(FULL));
    expect(queueOf(membership)).toBe(7);
  });

  it('is left out if invalid, of an unknown peer, or of a model that the peer does not publish', () => {
    const membership = known();
    membership.digestReceiver('peer', 'm')('[1]');
    membership.digestReceiver('stranger', 'm')(encodeDigest(FULL));
    membership.digestReceiver('peer', 'other')(encodeDigest(FULL));
    expect(queueOf(membership)).toBe(0);
    expect([...membership.digests.of('m').keys()]).toEqual(['peer']);
    expect(membership.digests.of('other').size).toBe(0);
  });

  it('is optional in the message, and bounded', () => {
    const busy = { type: 'refused', reason: 'busy', retry_after_ms: null };
    const digest = encodeDigest(FULL);
    expect(parseOwnerMessage(encodeMessage(busy))).toEqual(busy);
    expect(parseOwnerMessage(encodeMessage({ ...busy, digest }))).toEqual({ ...busy, digest });
    expect(parseOwnerMessage(encodeMessage({ ...busy, digest: ' '.repeat(3000) }))).toBeNull();
  });
});
