import { describe, expect, it } from 'vitest';
import { NetworkPermits } from '../../../src/cluster/permits/network-permits.js';
import type { NetworkLimit, Permit } from '../../../src/limits/network-limits.js';

const WINDOW_MS = 60_000;

class Network {
  time = 1000;
  readonly unreachable = new Set<string>();
  readonly cutOff = new Set<string>();
  readonly permits = new Map<string, NetworkPermits>();
  requests = 0;

  constructor(readonly ids: readonly string[]) {
    for (const id of ids) this.start(id);
    this.agree(ids);
  }

  start(self: string): void {
    const request = async (to: string, payload: Uint8Array): Promise<Uint8Array> => {
      this.requests++;
      await new Promise((resolve) => setImmediate(resolve));
      const peer = this.permits.get(to);
      if (peer === undefined || this.unreachable.has(to)) throw new Error('no answer');
      return peer.answer(self, payload);
    };
    this.permits.set(self, new NetworkPermits({ self, request, isConnected: () => !this.cutOff.has(self), now: () => this.time }));
  }

  agree(ids: readonly string[]): void {
    for (const id of ids) this.permits.get(id)?.coordinatorsChanged(ids);
  }

  limits(max: number): NetworkLimit[] {
    return [...this.permits.values()].map((permits) => permits.define('requests', { max, windowMs: WINDOW_MS }));
  }

  /** Home of a key: the only coordinator that decides without a request to another. */
  async homeOf(key: string): Promise<string> {
    for (const id of this.ids) {
      const before = this.requests;
      const permit = this.permits.get(id)?.define('probe', { max: 1000, windowMs: WINDOW_MS }).take(key);
      if (!(permit instanceof Promise)) return id;
      await permit;
      if (this.requests === before) throw new Error('no request was sent');
    }
    throw new Error('no coordinator is the home');
  }
}

const COORDINATORS = ['a', 'b', 'c'];
const keys = Array.from({ length: 30 }, (_, index) => `key-${index}`);
const countAdmitted = (permits: readonly Permit[]): number => permits.filter(({ isAdmitted }) => isAdmitted).length;

describe('limits of a network', () => {
  it('are exact for requests one after the other at all coordinators', async () => {
    const network = new Network(COORDINATORS);
    const limits = network.limits(5);
    for (const key of keys) {
      const permits: Permit[] = [];
      for (let index = 0; index < 12; index++) permits.push(await (limits[index % 3] as NetworkLimit).take(key));
      expect(permits.map(({ isAdmitted }) => isAdmitted)).toEqual(permits.map((_, index) => index < 5));
      expect(permits.map(({ remaining }) => remaining)).toEqual([4, 3, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
    network.time += WINDOW_MS + 1;
    expect((await (limits[1] as NetworkLimit).take('key-0')).isAdmitted).toBe(true);
  });

  it('are exact for concurrent requests at all coordinators', async () => {
    const network = new Network(COORDINATORS);
    const limits = network.limits(7);
    for (const key of keys) {
      const permits = await Promise.all(Array.from({ length: 60 }, (_, index) => (limits[index % 3] as NetworkLimit).take(key)));
      expect(countAdmitted(permits)).toBe(7);
    }
  });

  it('cost few messages when they are large, and none after they are reached', async () => {
    const network = new Network(COORDINATORS);
    const limits = network.limits(6000);
    let admitted = 0;
    for (let index = 0; index < 9000; index++) {
      const permit = (limits[index % 3] as NetworkLimit).take('heavy');
      if ((permit instanceof Promise ? await permit : permit).isAdmitted) admitted++;
    }
    expect(admitted).toBeLessThanOrEqual(6000);
    expect(admitted).toBeGreaterThan(5990);
    expect(network.requests).toBeLessThan(150);
    const before = network.requests;
    for (const limit of limits) expect(limit.take('heavy')).toMatchObject({ isAdmitted: false, remaining: 0 });
    expect(network.requests).toBe(before);
  });

  it('count amounts, and keep small requests admitted beside a large one that is refused', async () => {
    const network = new Network(COORDINATORS);
    const limits = network.limits(1000);
    for (const key of keys) {
      for (const limit of limits) expect((await limit.take(key, 300)).isAdmitted).toBe(true);
      for (const limit of limits) expect((await limit.take(key, 300)).isAdmitted).toBe(false);
      const small = await Promise.all(limits.map((limit) => limit.take(key, 50)));
      expect(countAdmitted(small)).toBe(2);
    }
  });

  it('are divided among the coordinators while the home of a key does not answer', async () => {
    const network = new Network(COORDINATORS);
    const home = await network.homeOf('key-0');
    const hash = 'probe';
    const others = COORDINATORS.filter((id) => id !== home);
    network.unreachable.add(home);
    for (const id of others) {
      const limit = (network.permits.get(id) as NetworkPermits).define(hash, { max: 30, windowMs: WINDOW_MS });
      network.time += WINDOW_MS;
      const permits = await Promise.all(Array.from({ length: 40 }, () => limit.take('key-0')));
      expect(countAdmitted(permits)).toBe(10);
      expect((await limit.take('key-0')).isAdmitted).toBe(false);
    }
    network.unreachable.clear();
    network.time += WINDOW_MS;
    const limit = (network.permits.get(others[0] as string) as NetworkPermits).define(hash, { max: 30, windowMs: WINDOW_MS });
    expect(countAdmitted(await Promise.all(Array.from({ length: 40 }, () => limit.take('key-0'))))).toBe(30);
  });

  it('are divided among coordinators that are cut off from each other', async () => {
    const network = new Network(COORDINATORS);
    const limits = network.limits(30);
    for (const id of COORDINATORS) {
      network.cutOff.add(id);
      network.unreachable.add(id);
    }
    for (const limit of limits) {
      const permits = Array.from({ length: 40 }, () => limit.take('key-0'));
      expect(permits.filter((permit) => !(permit instanceof Promise) && permit.isAdmitted)).toHaveLength(10);
    }
    expect(network.requests).toBe(0);
  });

  it('are not reset for requests in turn when the home of a key leaves', async () => {
    for (const key of keys) {
      const network = new Network(COORDINATORS);
      const home = await network.homeOf(key);
      const rest = COORDINATORS.filter((id) => id !== home);
      const limits = new Map(
        COORDINATORS.map((id) => [id, (network.permits.get(id) as NetworkPermits).define('probe', { max: 12, windowMs: WINDOW_MS })]),
      );
      network.time += WINDOW_MS + 1;
      const take = async (id: string): Promise<boolean> => (await (limits.get(id) as NetworkLimit).take(key)).isAdmitted;
      let admitted = 0;
      for (let index = 0; index < 6; index++) if (await take(COORDINATORS[index % 3] as string)) admitted++;
      network.unreachable.add(home);
      network.agree(rest);
      for (let index = 0; index < 30; index++) if (await take(rest[index % 2] as string)) admitted++;
      // At most two too many: a coordinator that has not asked the old home recently knows a lower count.
      expect(admitted).toBeGreaterThanOrEqual(12);
      expect(admitted).toBeLessThanOrEqual(14);
    }
  });

  it('bound the windows that one coordinator opens at another, and refuse malformed requests', () => {
    const permits = new NetworkPermits({ self: 'a', request: async () => new Uint8Array(), isConnected: () => true, now: () => 0 });
    permits.define('requests', { max: 5, windowMs: WINDOW_MS });
    const ask = (asker: string, message: object): Uint8Array => permits.answer(asker, Buffer.from(JSON.stringify(message)));
    const key = (index: number): string => index.toString(16).padStart(32, '0');
    const request = { limit: 'requests', min: 1, need: 1, want: 1, earlier: null };
    for (let index = 0; index < 20_000; index++) ask('hostile', { ...request, key: key(index) });
    expect(() => ask('hostile', { ...request, key: key(20_000) })).toThrow();
    expect(JSON.parse(Buffer.from(ask('b', { ...request, key: key(20_000) })).toString())).toMatchObject({ granted: 1, remaining: 4 });
    for (const bad of [
      { ...request, key: 'x' },
      { ...request, key: key(1), need: 0 },
      { ...request, key: key(1), need: 0.5 },
      { ...request, key: key(1), want: -1 },
      { ...request, key: key(1), earlier: { used: -1, reset_ms: 0 } },
      { ...request, key: key(1), limit: 'unknown' },
    ]) {
      expect(() => ask('b', bad)).toThrow();
    }
  });

  it('admit no more than the limit here, for every grant of a home', async () => {
    const grant = { granted: 9, remaining: 5, reset_ms: 1e15 };
    const permits = new NetworkPermits({
      self: 'a',
      request: async () => Buffer.from(JSON.stringify(grant)),
      isConnected: () => true,
      now: () => 0,
    });
    permits.coordinatorsChanged(['b']);
    const limit = permits.define('requests', { max: 5, windowMs: WINDOW_MS });
    const taken = await Promise.all(Array.from({ length: 20 }, () => limit.take('key')));
    expect(countAdmitted(taken)).toBe(5);
    expect(Math.max(...taken.map(({ resetMs }) => resetMs))).toBe(WINDOW_MS);
  });
});
