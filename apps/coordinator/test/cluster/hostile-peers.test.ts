/** Views omit a peer that answers with malformed messages or not at all. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { microUsd } from '../../src/billing/micro-usd.js';
import type { PeerStream } from '../../src/cluster/peer.js';
import { sendBody } from '../../src/cluster/stream-body.js';
import { startTwoCoordinators, type TwoCoordinators } from '../support/cluster-harness.js';
import { MODEL, until } from '../support/harness.js';
import { joinRoguePeer, type RoguePeer } from './rogue-peer.js';

let cluster: TwoCoordinators;
let rogue: RoguePeer;

beforeAll(async () => {
  cluster = await startTwoCoordinators({ refreshMs: 3_600_000 });
  await cluster.far.provider();
  rogue = joinRoguePeer(cluster.nats.url);
  await until(() => cluster.near.app.cluster.peerCount() === 2 && cluster.near.app.cluster.servingAtPeers(MODEL) === 1);
});
afterAll(async () => {
  await rogue.close();
  await cluster.close();
});

const send =
  (...messages: readonly (readonly [body: string, isText: boolean])[]) =>
  (stream: PeerStream) => {
    for (const [body, isText] of messages) stream.send(Buffer.from(body), isText);
    stream.close();
  };
const body = (text: string) => send([String(text.length), true], [text, false]);

const HOSTILE: Readonly<Record<string, (stream: PeerStream) => void>> = {
  'no JSON': body('{"object":'),
  'JSON of another shape': body('[{"id":1},{"provider_id":"x"}]'),
  'an impossible length': send(['99999999999999', true]),
  'no length': send(['{}', false]),
  'more than announced': send(['2', true], ['[[[]]]', false]),
  'less than announced': send(['200', true], ['[]', false]),
  'an end': (stream) => stream.close(),
  'an abort': (stream) => stream.abort('no'),
  // Like a process that SIGSTOP has stopped.
  nothing: () => {},
};

describe('a peer that answers with', () => {
  it.each(Object.keys(HOSTILE))('%s spoils no view', async (kind) => {
    rogue.answer = HOSTILE[kind] ?? (() => {});
    const key = cluster.far.adminKey;
    const paths = [
      '/v1/models',
      `/v1/models/${MODEL}`,
      '/v1/prices',
      '/v1/providers/attestation',
      '/admin/v1/providers',
      '/admin/v1/health',
    ];
    const answers = await Promise.all(
      paths.map(async (path) => {
        const response = await cluster.near.get(path, path.startsWith('/admin') ? key : cluster.far.apiKey);
        return { status: response.status, text: await response.text() };
      }),
    );
    expect(answers.map(({ status }) => status)).toEqual(paths.map(() => 200));
    for (const { text } of answers.slice(0, 4)) expect(text).toContain(MODEL);
    expect(JSON.parse(answers.at(-1)?.text ?? '')).toMatchObject({ coordinators: [{ id: 'near' }, { id: 'far' }] });
  });
});

describe('an honest peer', () => {
  it('may have a part of megabytes', async () => {
    const models = Array.from({ length: 100_000 }, (_, index) => `large/model-${index}-with-a-long-name`);
    rogue.answer = (stream) => void sendBody(stream, Buffer.from(JSON.stringify(models)));
    const prices = (await (await cluster.near.get('/v1/prices')).json()) as { data: { model: string }[] };
    expect(new Set(prices.data.map(({ model }) => model))).toEqual(new Set([MODEL, ...models]));
  });
});

describe('hints', () => {
  it('that are malformed change nothing', async () => {
    rogue.answer = (stream) => stream.close();
    const key = cluster.far.apiKey;
    for (const text of [
      '',
      'x',
      '[]',
      '{"hints":1}',
      '{"hints":[{"kind":"drop","subject":""}]}',
      '{"hints":[{"kind":"key","subject":"\\u0000"}]}',
    ]) {
      rogue.publish('fleet.nudge.rogue', Buffer.from(text));
    }
    await cluster.far.app.prices.set({
      model: MODEL,
      promptPerMillion: microUsd(5),
      completionPerMillion: microUsd(5),
      perImage: microUsd(5),
    });
    await until(() => cluster.near.app.prices.current(MODEL).promptPerMillion === 5);
    expect((await cluster.near.get('/v1/models', key)).status).toBe(200);
  });
});

describe('without NATS', () => {
  it('a coordinator shows its own part', async () => {
    await cluster.nats.stop();
    const near = await cluster.near.get('/v1/models', cluster.far.apiKey);
    expect(await near.json()).toEqual({ object: 'list', data: [] });
    const far = await cluster.far.get(`/v1/models/${MODEL}`);
    expect(far.status).toBe(200);
    expect((await cluster.near.get(`/v1/images/files/${'A'.repeat(72)}.png`)).status).toBe(404);
  });
});
