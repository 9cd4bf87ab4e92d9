/** Gauges of a cluster: two real coordinators on one NATS server. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { encodeMessage } from '../../src/cluster/json-message.js';
import { CLUSTER_VERSION } from '../../src/cluster/membership/heartbeat.js';
import { startTwoCoordinators, type TwoCoordinators } from '../support/cluster-harness.js';
import { until } from '../support/harness.js';
import { joinRoguePeer } from './rogue-peer.js';

let cluster: TwoCoordinators;

beforeAll(async () => {
  cluster = await startTwoCoordinators();
});
afterAll(() => cluster.close());

/** Values of `near` by metric and labels. */
async function metrics(): Promise<ReadonlyMap<string, number>> {
  const text = await (await cluster.near.get('/metrics', cluster.far.adminKey)).text();
  const rows = text.split('\n').map((line) => /^inference_(cluster_\S+) (\S+)$/.exec(line));
  return new Map(rows.filter((row) => row !== null).map(([, name, value]) => [name as string, Number(value)]));
}

test('metrics tell peers, links, round trips and the connection to NATS', async () => {
  await until(async () => (await metrics()).has('cluster_link_round_trip_seconds{peer="far"}'));
  const values = await metrics();
  const peer = '{peer="far"}';
  expect(values.get('cluster_nats_connected')).toBe(1);
  expect(values.get('cluster_nats_buffered_bytes')).toBeGreaterThanOrEqual(0);
  expect(values.get('cluster_peers{state="serving"}')).toBe(1);
  expect(values.get('cluster_peers{state="draining"}')).toBe(0);
  expect(values.get(`cluster_heartbeat_age_seconds${peer}`)).toBeLessThan(3);
  expect(Math.abs(values.get(`cluster_clock_difference_seconds${peer}`) ?? 10)).toBeLessThan(1);
  expect(values.get(`cluster_peer_providers${peer}`)).toBe(0);
  expect(values.get(`cluster_peer_models${peer}`)).toBe(0);
  expect(values.get(`cluster_link_up${peer}`)).toBe(1);
  expect(values.get(`cluster_link_streams${peer}`)).toBe(0);
  expect(values.get(`cluster_link_retained_bytes${peer}`)).toBeGreaterThanOrEqual(0);
  expect(values.get(`cluster_link_losses${peer}`)).toBe(0);
  expect(values.get(`cluster_link_round_trip_seconds${peer}`)).toBeGreaterThan(0);
  expect(values.get('cluster_link_envelopes{peer="far",outcome="received"}')).toBeGreaterThan(0);
  expect(values.get('cluster_link_envelopes{peer="far",outcome="retransmitted"}')).toBe(0);
});

test('a provider at the peer is counted', async () => {
  const provider = await cluster.far.provider();
  await until(async () => (await metrics()).get('cluster_peer_providers{peer="far"}') === 1);
  expect((await metrics()).get('cluster_peer_models{peer="far"}')).toBe(1);
  await provider.close?.();
});

test('a coordinator of an unknown version is logged and counted', async () => {
  const { near, far, nats } = cluster;
  const later = joinRoguePeer(nats.url);
  try {
    await until(() => near.app.cluster.peerCount() === 2);
    later.publish('fleet.digest.later', encodeMessage({ version: CLUSTER_VERSION + 2 }));
    await until(async () => (await metrics()).get('cluster_refused_heartbeats_total{reason="unsupported_version"}') === 1);
    const refusals = near.log.filter((line) => line.includes('another coordinator is refused'));
    expect(refusals.map((line) => JSON.parse(line))).toEqual([
      expect.objectContaining({ peer: 'later', reason: 'unsupported_version', version: CLUSTER_VERSION + 2, own_version: CLUSTER_VERSION }),
    ]);
    expect(far.app.cluster.peerCount()).toBe(2);
  } finally {
    await later.close();
  }
});
