/** The number of requests for peers' parts per second is limited. Under load, cached parts are used. */
import Type from 'typebox';
import { expect, it } from 'vitest';
import { ClusterViews } from '../../src/cluster/cluster-views.js';
import { type Peer, PeerStream } from '../../src/cluster/peer.js';

it('asks a peer a bounded number of times per second', async () => {
  let nowMs = 0;
  let asked = 0;
  const peer: Peer = {
    id: 'far',
    request: () => Promise.reject(new Error('views use streams')),
    openStream: () => {
      const stream = new PeerStream();
      const part = Buffer.from(String(++asked));
      queueMicrotask(() => {
        stream.onMessage(Buffer.from(String(part.length)), true);
        stream.onMessage(part, false);
      });
      return stream;
    },
  };
  const views = new ClusterViews({ peers: () => [peer], now: () => nowMs });
  const read = views.define('counts', { query: Type.Null(), part: Type.Number() }, () => 0);
  const readOften = async (): Promise<number[][]> => {
    const parts: number[][] = [];
    for (let request = 0; request < 200; request++) parts.push(await read(null));
    return parts;
  };
  expect((await readOften()).at(-1)).toEqual([0, 20]);
  expect(asked).toBe(20);
  nowMs += 1000;
  expect((await readOften()).at(-1)).toEqual([0, 40]);
  expect(asked).toBe(40);
});
