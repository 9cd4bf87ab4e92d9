/** The next turn of a conversation is placed on the provider that caches its prefix, regardless of the coordinator that the client uses. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Broadcast } from '../../src/cluster/membership/membership.js';
import { PrefixHints } from '../../src/cluster/placement/prefix-hints.js';
import { startTwoCoordinators, type TwoCoordinators } from '../support/cluster-harness.js';
import { until } from '../support/harness.js';
import { joinRoguePeer, type RoguePeer } from './rogue-peer.js';

describe('two coordinators', () => {
  let cluster: TwoCoordinators;
  let rogue: RoguePeer;
  let markers = 0;

  beforeAll(async () => {
    cluster = await startTwoCoordinators();
    rogue = joinRoguePeer(cluster.nats.url);
    await until(() => cluster.far.app.cluster.peerCount() === 2);
  });
  afterAll(async () => {
    await rogue.close();
    await cluster.close();
  });

  /** Messages of the near coordinator arrive in order, so once the marker has arrived, the far one has all earlier messages. */
  async function allArrived(): Promise<void> {
    const marker = `affinity/marker-${++markers}`;
    await cluster.near.provider({ models: [marker] });
    await until(() => cluster.far.app.cluster.servingAtPeers(marker) === 1);
  }

  const user = (content: string) => ({ role: 'user', content });
  const providerOf = async (response: Promise<Response>): Promise<string | null> => {
    const answered = await response;
    expect(answered.status).toBe(200);
    await answered.text();
    return answered.headers.get('x-provider-id');
  };

  it('send a conversation to the provider that knows it, and others to an own one', async () => {
    const model = 'affinity/model';
    const [near, far] = [await cluster.near.provider({ models: [model] }), await cluster.far.provider({ models: [model] })];
    await until(() => cluster.near.app.cluster.servingAtPeers(model) === 1 && cluster.far.app.cluster.servingAtPeers(model) === 1);
    const published = new Promise<void>((resolve) => {
      const stop = rogue.subscribe('fleet.affinity.near', () => {
        stop();
        resolve();
      });
    });
    const first = [user('a long question, '.repeat(1000))];
    expect(await providerOf(cluster.near.chat({ model, messages: first }))).toBe(near.providerId);
    await published;
    await allArrived();
    const headers = { authorization: `Bearer ${cluster.near.apiKey}` };
    const next = [...first, { role: 'assistant', content: 'an answer' }, user('and then?')];
    expect(await providerOf(cluster.far.chat({ model, messages: next }, { headers }))).toBe(near.providerId);
    // Another prompt, and the same prompt of another account.
    expect(await providerOf(cluster.far.chat({ model, messages: [user('other words, '.repeat(1000))] }, { headers }))).toBe(far.providerId);
    const { apiKey } = await cluster.near.customer(1_000_000);
    const other = { authorization: `Bearer ${apiKey}` };
    expect(await providerOf(cluster.far.chat({ model, messages: next }, { headers: other }))).toBe(far.providerId);
  });
});

describe('hints of peers', () => {
  const promptPrefixes = [1, 2, 3].map((hash) => ({ hash, tokens: 256 * hash }));

  /** `PrefixHints` on a fake broadcast, with the published messages. */
  function hintsOf(now = () => 0) {
    let receive: (subject: string, bytes: Uint8Array) => void = () => {};
    const published: unknown[] = [];
    const broadcast: Broadcast = {
      publish: (subject, bytes) => published.push([subject, JSON.parse(Buffer.from(bytes).toString())]),
      subscribe: (_, handler) => {
        receive = handler;
        return () => {};
      },
    };
    const hints = new PrefixHints({ self: 'self', broadcast, now });
    return { hints, published, receive: (text: string, from = 'peer') => receive(`fleet.affinity.${from}`, Buffer.from(text)) };
  }

  it('are taken by the sender that the subject proves', () => {
    const { hints, receive } = hintsOf();
    expect(hints.find(promptPrefixes)).toBeNull();
    receive('{"hashes":[2]}');
    expect(hints.find(promptPrefixes)).toEqual({ owner: 'peer', tokens: 512 });
    receive('{"hashes":[3]}', 'self');
    expect(hints.find(promptPrefixes)).toEqual({ owner: 'peer', tokens: 512 });
  });

  it.each([
    '',
    '{"hashes":',
    '{"hashes":["3"]}',
    '{"hashes":[3,-1]}',
    '{"hashes":[3,0.5]}',
    '{"hashes":3}',
    '[3]',
    'null',
    JSON.stringify({ hashes: Array(1001).fill(3) }),
    `{"hashes":[3]${' '.repeat(40_000)}}`,
  ])('of another shape or size are left out: %.30s', (text) => {
    const { hints, receive } = hintsOf();
    receive(text);
    expect(hints.find(promptPrefixes)).toBeNull();
  });

  it('are taken up to a rate', () => {
    let now = 0;
    const { hints, receive } = hintsOf(() => now);
    for (let count = 0; count < 2000; count++) receive('{"hashes":[7]}');
    receive('{"hashes":[3]}');
    expect(hints.find(promptPrefixes)).toBeNull();
    now = 1000;
    receive('{"hashes":[3]}');
    expect(hints.find(promptPrefixes)).not.toBeNull();
  });

  it('are published together, at most ten per answer and a thousand per message', async () => {
    const { hints, published } = hintsOf();
    hints.answered(promptPrefixes);
    const long = Array.from({ length: 100_000 }, (_, index) => ({ hash: 10 + index, tokens: 256 * (index + 1) }));
    hints.answered(long);
    for (let answer = 0; answer < 1200; answer++) hints.answered([{ hash: 1_000_000 + answer, tokens: 256 }]);
    await until(() => published.length > 0);
    const lists = published.map((message) => (message as [string, { hashes: number[] }])[1].hashes);
    expect(published.every((message) => (message as [string, unknown])[0] === 'fleet.affinity.self')).toBe(true);
    expect(lists.map(({ length }) => length)).toEqual([1000, 213]);
    expect(lists[0]?.slice(0, 3)).toEqual([1, 2, 3]);
    expect(lists[0]?.slice(3, 14).filter((hash) => hash < 1_000_000)).toHaveLength(10);
    expect(hints.find(promptPrefixes)).toEqual({ owner: 'self', tokens: 768 });
    hints.close();
  });
});
