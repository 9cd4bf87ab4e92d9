/** Messages about a peer's models take different paths and may overtake each other. An older one never replaces a newer one. */
import { EMPTY_DIGEST, encodeDigest } from '@inference/scheduler';
import { afterEach, describe, expect, it } from 'vitest';
import {
  CLUSTER_VERSION,
  decodeHeartbeat,
  encodeHeartbeat,
  encodeModel,
  type Heartbeat,
} from '../../../src/cluster/membership/heartbeat.js';
import { Membership } from '../../../src/cluster/membership/membership.js';
import { until } from '../../support/harness.js';

const digestOf = (queueLength: number) => ({ ...EMPTY_DIGEST, serving: 1, totalSlots: 4, maxContextTokens: 8192, queueLength });
const model = (id: string, queueLength = 0) => encodeModel({ id, type: 'text', images: [], vision: null, digest: digestOf(queueLength) });
const removed = (id: string): Heartbeat['models'][number] => ({ id, type: 'text', images: [], digest: null });

const message = (sequence: number, models: Heartbeat['models']): Uint8Array =>
  encodeHeartbeat({
    version: CLUSTER_VERSION,
    epoch: '0123456789abcdef',
    sequence,
    at: 1000,
    draining: false,
    goodbye: false,
    providers: 1,
    models,
  });

let opened: Membership | null = null;
afterEach(() => opened?.close());

/** `Membership` with one peer, `peer`. `answers` complete the requests for all models of the peer, in the order of the requests. */
function observer() {
  let receive: (subject: string, bytes: Uint8Array) => void = () => {};
  const answers: ((bytes: Uint8Array) => void)[] = [];
  const published: Heartbeat[] = [];
  const membership = new Membership({
    self: 'self',
    broadcast: {
      publish: (_subject, bytes) => {
        const decoded = decodeHeartbeat(bytes);
        if (decoded.kind === 'heartbeat') published.push(decoded.heartbeat);
      },
      subscribe: (_, handler) => {
        receive = handler;
        return () => {};
      },
    },
    models: () => [{ id: 'own', type: 'text', images: [], vision: null, digest: digestOf(0) }],
    providers: () => 0,
    isDraining: () => false,
    requestModels: () => new Promise((resolve) => answers.push(resolve)),
    events: { joined: () => {}, left: () => {}, changed: () => {}, clockDiffers: () => {}, refused: () => {} },
    now: () => 1000,
  });
  opened = membership;
  return {
    membership,
    answers,
    published,
    heartbeat: (sequence: number, ...models: Heartbeat['models']) => receive('fleet.digest.peer', message(sequence, models)),
    /** Completes a request for all models, and lets `Membership` store the answer. */
    answer: async (index: number, sequence: number, ...models: Heartbeat['models']) => {
      answers[index]?.(message(sequence, models));
      await new Promise(setImmediate);
    },
    queueOf: (id: string) => membership.digests.of(id).get('peer')?.digest.queueLength,
  };
}

describe('a reply with all models', () => {
  it('replaces no model that a later heartbeat has changed', async () => {
    const { membership, heartbeat, answer, queueOf } = observer();
    heartbeat(1);
    heartbeat(2, model('changed', 7), model('added'), removed('ended'));
    await answer(0, 1, model('changed', 1), model('ended'), model('other', 3));
    expect(queueOf('changed')).toBe(7);
    expect([...membership.modelsAtPeers()].sort()).toEqual(['added', 'changed', 'other']);
  });

  it('removes models that neither the reply nor a later heartbeat contains', async () => {
    const { membership, heartbeat, answer } = observer();
    heartbeat(1, model('ended'), model('other'));
    heartbeat(2);
    await answer(0, 2, model('other'));
    expect([...membership.modelsAtPeers()]).toEqual(['other']);
  });

  it('is not replaced by a heartbeat that it overtook', async () => {
    const { membership, heartbeat, answer, queueOf } = observer();
    heartbeat(1);
    await answer(0, 3, model('changed', 7));
    heartbeat(2, model('changed', 1), model('ended'));
    expect(queueOf('changed')).toBe(7);
    heartbeat(3, removed('ended'));
    heartbeat(4, model('changed', 2));
    expect(queueOf('changed')).toBe(2);
    expect([...membership.modelsAtPeers()]).toEqual(['changed']);
  });

  it('is not replaced by an earlier one that arrives later', async () => {
    const { answers, heartbeat, answer, queueOf } = observer();
    heartbeat(1);
    heartbeat(3);
    expect(answers).toHaveLength(2);
    await answer(1, 3, model('changed', 7));
    await answer(0, 1, model('changed', 1));
    expect(queueOf('changed')).toBe(7);
  });
});

describe('the digest in a reply to a placement request', () => {
  it('replaces no digest that arrived during the request', () => {
    const { membership, heartbeat, queueOf } = observer();
    heartbeat(1, model('changed'));
    const receive = membership.digestReceiver('peer', 'changed');
    heartbeat(2, model('changed', 7));
    receive(encodeDigest(digestOf(1)));
    expect(queueOf('changed')).toBe(7);
    membership.digestReceiver('peer', 'changed')(encodeDigest(digestOf(2)));
    expect(queueOf('changed')).toBe(2);
  });

  it('is confirmed or replaced by the next heartbeat of the sender, even if the model is as published before', async () => {
    const { membership, published } = observer();
    membership.announce();
    membership.announce();
    membership.digestSent('own');
    membership.digestSent('unknown');
    membership.announce();
    await until(() => published.length >= 3);
    expect(published.map(({ models }) => models.map(({ id }) => id))).toEqual([['own'], [], ['own']]);
  });
});
