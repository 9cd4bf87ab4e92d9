/** The number of requests for peers' parts per second is limited. Under load, cached parts are used. */
import Type from 'typebox';
import { expect, it } from 'vitest';
import { ClusterViews } from '../../src/cluster/cluster-views.js';
import { type Peer, PeerStream } from '../../src/cluster/peer.js';

/** Views of a peer that counts the queries and renders each answer from the count. */
function countedViews(render: (asked: number) => unknown = (asked) => asked) {
  const counted = { nowMs: 0, asked: 0 };
  const peer: Peer = {
    id: 'far',
    request: () => Promise.reject(new Error('views use streams')),
    openStream: () => {
      const stream = new PeerStream();
      const part = Buffer.from(JSON.stringify(render(++counted.asked)));
      queueMicrotask(() => {
        stream.onMessage(Buffer.from(String(part.length)), true);
        stream.onMessage(part, false);
      });
      return stream;
    },
  };
  return { counted, views: new ClusterViews({ peers: () => [peer], now: () => counted.nowMs }) };
}

it('asks a peer a bounded number of times per second', async () => {
  const { counted, views } = countedViews();
  const read = views.define('counts', { query: Type.Null(), part: Type.Number() }, () => 0);
  const readOften = async (): Promise<number[][]> => {
    const parts: number[][] = [];
    for (let request = 0; request < 200; request++) parts.push(await read(null));
    return parts;
  };
  expect((await readOften()).at(-1)).toEqual([0, 20]);
  expect(counted.asked).toBe(20);
  counted.nowMs += 1000;
  expect((await readOften()).at(-1)).toEqual([0, 40]);
  expect(counted.asked).toBe(40);
});

it('sends each of many different queries once per second under load, also those sent before the load', async () => {
  const { counted, views } = countedViews();
  const read = views.define('counts', { query: Type.Integer(), part: Type.Number() }, () => 0);
  for (let round = 0; round < 10; round++) for (let query = 0; query < 100; query++) await read(query);
  expect(counted.asked).toBe(100);
  expect(await read(0)).toEqual([0, 1]);
  counted.nowMs += 1000;
  for (let query = 0; query < 100; query++) await read(query);
  expect(counted.asked).toBe(200);
});

it('sends an action to the peers every time, under load too', async () => {
  const { counted, views } = countedViews();
  const act = views.defineAction('action', { query: Type.Null(), part: Type.Number() }, () => 0);
  for (let call = 1; call <= 50; call++) expect(await act(null)).toEqual([0, call]);
  const together = await Promise.all([act(null), act(null)]);
  expect(together.map(([, ofPeer]) => ofPeer).sort()).toEqual([51, 52]);
  expect(counted.asked).toBe(52);
});

const MEBIBYTE = 1024 * 1024;

/** Two views under load, whose further answers from the peer have these sizes in turn. */
async function twoBusyViews(...sizes: readonly number[]) {
  const { counted, views } = countedViews((asked) => 'x'.repeat(sizes[asked - 81] ?? 0));
  const define = (name: string) => views.define(name, { query: Type.Integer(), part: Type.String() }, () => '');
  const [one, other] = [define('one'), define('other')];
  for (const read of [one, other]) for (let query = 0; query < 40; query++) await read(query);
  expect(counted.asked).toBe(80);
  return { counted, one, other };
}

it('limits the cached parts of all views together, except for the newest of each', async () => {
  const { counted, one, other } = await twoBusyViews(20 * MEBIBYTE, 0, 20 * MEBIBYTE, 20 * MEBIBYTE);
  await one(40);
  await one(41);
  // Evicts the large part of the first view, which is not its newest.
  await other(40);
  await one(41);
  expect(counted.asked).toBe(83);
  for (let round = 0; round < 3; round++) {
    await one(40);
    await other(40);
  }
  expect(counted.asked).toBe(84);
});

it('evicts cached parts of the same view before those of other views', async () => {
  const { counted, one, other } = await twoBusyViews(10 * MEBIBYTE, 0, 20 * MEBIBYTE, 20 * MEBIBYTE);
  for (const query of [40, 41]) await one(query);
  for (const query of [40, 41]) await other(query);
  expect(counted.asked).toBe(84);
  await one(40);
  await other(41);
  expect(counted.asked).toBe(84);
  await other(40);
  expect(counted.asked).toBe(85);
});

it('caches parts up to a total size, and the newest even beyond', async () => {
  const large = 'x'.repeat(20 * 1024 * 1024);
  const { counted, views } = countedViews((asked) => (asked <= 40 ? '' : large));
  const read = views.define('texts', { query: Type.Integer(), part: Type.String() }, () => '');
  for (let query = 0; query < 40; query++) await read(query);
  for (const query of [40, 40, 41, 41, 40]) await read(query);
  expect(counted.asked).toBe(43);
});
