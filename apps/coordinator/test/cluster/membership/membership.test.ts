import { EventEmitter } from 'node:events';
import { EMPTY_DIGEST } from '@inference/scheduler';
import { afterEach, expect, it, vi } from 'vitest';
import type { PublishedModel } from '../../../src/cluster/membership/heartbeat.js';
import { Membership } from '../../../src/cluster/membership/membership.js';
import { until } from '../../support/harness.js';

const MODEL: PublishedModel = {
  id: 'test/model-1',
  type: 'text',
  images: [],
  vision: null,
  digest: { ...EMPTY_DIGEST, serving: 1, totalSlots: 1, maxContextTokens: 4096 },
};

const opened = new Map<string, Membership>();
afterEach(() => {
  for (const membership of opened.values()) membership.close();
  opened.clear();
  vi.useRealTimers();
});

/** A coordinator's `Membership` on a network within this process. */
function join(network: EventEmitter, self: string, models: () => PublishedModel[], read = (_id: string): void => {}): Membership {
  const membership = new Membership({
    self,
    broadcast: {
      publish: (subject, bytes) => void network.emit('message', subject, bytes),
      subscribe: (_pattern, handler) => {
        network.on('message', handler);
        return () => network.off('message', handler);
      },
    },
    models,
    providers: () => 0,
    isDraining: () => false,
    requestModels: async (id) => {
      read(id);
      return opened.get(id)?.allModels() ?? new Uint8Array();
    },
    events: { joined: () => {}, left: () => {}, changed: () => {}, clockDiffers: () => {}, refused: () => {} },
    now: Date.now,
  });
  opened.set(self, membership);
  membership.announce();
  return membership;
}

it('a new peer learns of the others before their next heartbeats', async () => {
  vi.useFakeTimers();
  const network = new EventEmitter();
  join(network, 'early', () => [MODEL]);
  await vi.advanceTimersByTimeAsync(500);
  const late = join(network, 'late', () => []);
  expect(late.isLive('early')).toBe(false);
  await vi.advanceTimersByTimeAsync(100);
  expect(late.isLive('early')).toBe(true);
  expect([...late.modelsAtPeers()]).toEqual([MODEL.id]);
});

it('peers that come and go cause at most ten heartbeats per second', async () => {
  vi.useFakeTimers();
  const network = new EventEmitter();
  let heartbeatCount = 0;
  network.on('message', (subject: string) => {
    if (subject.endsWith('.steady')) heartbeatCount++;
  });
  join(network, 'steady', () => []);
  for (let round = 0; round < 100; round++) {
    join(network, 'fickle', () => []).close();
    await vi.advanceTimersByTimeAsync(10);
  }
  expect(heartbeatCount).toBeGreaterThan(5);
  expect(heartbeatCount).toBeLessThanOrEqual(12);
});

it('a model that is gone only while a peer reads all models comes back to the peer', async () => {
  const network = new EventEmitter();
  let served = [MODEL];
  const owner = join(network, 'owner', () => served);
  const peer = join(network, 'peer', () => []);
  await until(() => peer.modelsAtPeers().has(MODEL.id));
  served = [];
  await peer.refresh('owner');
  expect(peer.modelsAtPeers().has(MODEL.id)).toBe(false);
  served = [MODEL];
  owner.modelsChanged();
  await until(() => peer.modelsAtPeers().has(MODEL.id));
});

it('a failed read of all models is repeated', async () => {
  vi.useFakeTimers();
  const network = new EventEmitter();
  join(network, 'owner', () => [MODEL]);
  await vi.advanceTimersByTimeAsync(500);
  let readCount = 0;
  const peer = join(
    network,
    'peer',
    () => [],
    () => {
      if (++readCount <= 2) throw new Error('the link is broken');
    },
  );
  await vi.advanceTimersByTimeAsync(10_000);
  expect([...peer.modelsAtPeers()]).toEqual([MODEL.id]);
  expect(readCount).toBe(3);
});

it('callers at the same time share one read of all models', async () => {
  const network = new EventEmitter();
  let served: PublishedModel[] = [];
  let readCount = 0;
  join(network, 'owner', () => served);
  const peer = join(
    network,
    'peer',
    () => [],
    () => readCount++,
  );
  await until(() => peer.isLive('owner') && readCount > 0);
  const before = readCount;
  await peer.refresh('owner');
  served = [MODEL];
  await Promise.all(Array.from({ length: 20 }, () => peer.refresh('owner')));
  expect(readCount).toBe(before + 2);
  expect(peer.modelsAtPeers().has(MODEL.id)).toBe(true);
});
