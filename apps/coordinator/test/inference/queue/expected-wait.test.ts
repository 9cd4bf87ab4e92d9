/** Expected wait of a request: depends on the suitable slots, and on queued requests for the same slots. */
import { describe, expect, it } from 'vitest';
import { FairQueue } from '../../../src/inference/queue/fair-queue.js';
import { RequestQueue, type SlotRequest } from '../../../src/inference/queue/request-queue.js';
import type { ProviderSelector } from '../../../src/providers/placement/model-directory.js';
import type { ProviderRegistry } from '../../../src/providers/provider-registry.js';

/** A busy registry with ten slots: one at trust level hardware, and two on a named provider. */
function queueOf(floorOf?: () => 'hardware' | null): RequestQueue {
  const registry = {
    placement: { choose: () => ({ kind: 'busy' }) },
    models: {
      canLoad: () => false,
      isFree: () => false,
      slotCount: (_model: string, { providerSerial, trustFloor }: ProviderSelector = { providerSerial: null, trustFloor: null }) =>
        providerSerial !== null ? 2 : trustFloor === 'hardware' ? 1 : 10,
      onCapacity: () => () => {},
    },
  } as unknown as ProviderRegistry;
  const queue = new RequestQueue(registry, 256, floorOf);
  for (let jobs = 0; jobs < 3; jobs++) queue.served('m', 1000);
  return queue;
}

const requestOf = (change: Partial<SlotRequest> = {}): SlotRequest => ({
  model: 'm',
  accountId: 'a',
  providerSerial: null,
  exclude: new Set(),
  trustFloor: null,
  work: { promptTokens: 10, completionTokens: 10 },
  promptPrefixes: [],
  ...change,
});
const hardware: Partial<SlotRequest> = { trustFloor: 'hardware', hasClientFloor: true };

describe('the expected wait', () => {
  it('depends on the suitable slots, and on all requests before', async () => {
    const queue = queueOf();
    const abort = new AbortController();
    const placements = [...Array(9).fill(requestOf()), requestOf(hardware)].map((request) => queue.place(request, 60_000, abort.signal));
    // Ten requests wait for ten slots: one second, plus the time of the new request itself.
    expect(queue.outlook('m')).toEqual({ waiting: 10, waitMs: 1100 });
    // One of the ten also needs the only hardware slot.
    expect(queue.outlook('m', 'hardware')).toEqual({ waiting: 10, waitMs: 2000 });
    abort.abort();
    await Promise.all(placements);
    queue.close();
  });

  it('refuses requests that would wait too long for the few suitable providers, and no other', async () => {
    const queue = queueOf();
    const abort = new AbortController();
    const ask = (change: Partial<SlotRequest>) => queue.place(requestOf({ accountId: `${Math.random()}`, ...change }), 3000, abort.signal);
    const placements = Array.from({ length: 6 }, () => ask(hardware));
    const refused = await ask(hardware);
    expect(refused).toEqual({ kind: 'refused', reason: 'hopeless', retryAfterMs: 7000 });
    const waits = [ask({}), ask({ providerSerial: 'S' })];
    expect(queue.waiting).toBe(8);
    abort.abort();
    await Promise.all([...placements, ...waits]);
    queue.close();
  });

  it('counts only hardware-trusted slots where the model requires them', () => {
    const queue = queueOf(() => 'hardware');
    expect(queue.outlook('m')).toEqual({ waiting: 0, waitMs: 1000 });
    queue.close();
  });
});

it('queued requests with the same restriction are counted account by account', () => {
  const queue = new FairQueue<{ accountId: string; cost: number; kind: string }>(100);
  const add = (accountId: string, ...kinds: string[]): void => {
    for (const kind of kinds) queue.add({ accountId, cost: 1, kind });
  };
  add('a', 'x', 'y', 'x');
  add('b', 'y', 'y');
  add('c', 'x');
  const isX = ({ kind }: { kind: string }): boolean => kind === 'x';
  expect([queue.aheadOf('a'), queue.aheadOf('c'), queue.aheadOf('new'), queue.aheadOf(null)]).toEqual([6, 5, 3, 6]);
  expect([queue.aheadOf('a', isX), queue.aheadOf('b', isX), queue.aheadOf('new', isX), queue.aheadOf(null, isX)]).toEqual([3, 2, 2, 3]);
});
