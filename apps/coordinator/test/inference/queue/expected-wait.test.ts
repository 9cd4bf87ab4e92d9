/** How long a request is told that it would wait: by the places that may have it, and by those that wait for the same ones. */
import { describe, expect, it } from 'vitest';
import { FairQueue } from '../../../src/inference/queue/fair-queue.js';
import { RequestQueue, type SlotRequest } from '../../../src/inference/queue/request-queue.js';
import type { ProviderSelector } from '../../../src/providers/placement/served-models.js';
import type { ProviderRegistry } from '../../../src/providers/provider-registry.js';

/** A fleet in which everyone is busy: ten places, of which one is on a machine of trust level hardware, and two on a named one. */
function roomOf(floorOf?: () => 'hardware' | null): RequestQueue {
  const fleet = {
    placement: { choose: () => ({ kind: 'busy' }) },
    models: {
      canLoad: () => false,
      isFree: () => false,
      slotCount: (_model: string, { providerSerial, trustFloor }: ProviderSelector = { providerSerial: null, trustFloor: null }) =>
        providerSerial !== null ? 2 : trustFloor === 'hardware' ? 1 : 10,
      onCapacity: () => () => {},
    },
  } as unknown as ProviderRegistry;
  const room = new RequestQueue(fleet, 256, floorOf);
  for (let jobs = 0; jobs < 3; jobs++) room.served('m', 1000);
  return room;
}

const requestOf = (change: Partial<SlotRequest> = {}): SlotRequest => ({
  model: 'm',
  accountId: 'a',
  providerSerial: null,
  exclude: new Set(),
  trustFloor: null,
  work: { promptTokens: 10, completionTokens: 10 },
  chain: [],
  ...change,
});
const hardware: Partial<SlotRequest> = { trustFloor: 'hardware', ownFloor: true };

describe('the wait that is told', () => {
  it('goes by the places that may have the request, and by all that come before', async () => {
    const room = roomOf();
    const gone = new AbortController();
    const seats = [...Array(9).fill(requestOf()), requestOf(hardware)].map((request) => room.place(request, 60_000, gone.signal));
    // Ten wait for ten places: a second, and one for the turn itself.
    expect(room.outlook('m')).toEqual({ waiting: 10, waitMs: 1100 });
    // Of those, one wants the one place as well.
    expect(room.outlook('m', 'hardware')).toEqual({ waiting: 10, waitMs: 2000 });
    gone.abort();
    await Promise.all(seats);
    room.close();
  });

  it('refuses as hopeless who would wait too long for the few that are good enough, and nobody else', async () => {
    const room = roomOf();
    const gone = new AbortController();
    const ask = (change: Partial<SlotRequest>) => room.place(requestOf({ accountId: `${Math.random()}`, ...change }), 3000, gone.signal);
    const seats = Array.from({ length: 6 }, () => ask(hardware));
    const refused = await ask(hardware);
    expect(refused).toEqual({ kind: 'refused', reason: 'hopeless', retryAfterMs: 7000 });
    const waits = [ask({}), ask({ providerSerial: 'S' })];
    expect(room.waiting).toBe(8);
    gone.abort();
    await Promise.all([...seats, ...waits]);
    room.close();
  });

  it('is that of the few for everyone, where the model itself asks for them', () => {
    const room = roomOf(() => 'hardware');
    expect(room.outlook('m')).toEqual({ waiting: 0, waitMs: 1000 });
    room.close();
  });
});

it('those of a kind that come before are counted account by account', () => {
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
