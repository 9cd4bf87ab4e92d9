/** Gauges of a cluster, and the queries of dashboards and alerts: two real coordinators on one NATS server. */
import { ERRORS } from '@inference/formats';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { dashboardQueries, parseQuery, readRules } from '../../../../scripts/monitoring/rule-files.js';
import { encodeMessage } from '../../src/cluster/json-message.js';
import { CLUSTER_VERSION } from '../../src/cluster/membership/heartbeat.js';
import { Metrics } from '../../src/telemetry/metrics.js';
import { startTwoCoordinators, type TwoCoordinators } from '../support/cluster-harness.js';
import { until } from '../support/harness.js';
import { metricFamilies } from '../support/metric-families.js';
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
    await until(() => far.app.cluster.peerCount() === 2);
  } finally {
    await later.close();
  }
});

describe('dashboards and alerts', () => {
  /** Labels that Prometheus adds to each sample, and to its own metric `up`. */
  const TARGET_LABELS = ['instance', 'job'];
  /** Labels of metrics of optional parts, which these coordinators lack. */
  const OPTIONAL = new Map([
    ['inference_device_reports', ['outcome']],
    ['inference_certificate_expiry_timestamp_seconds', ['certificate']],
  ]);
  const ENDS = new Set(['delivered', 'client_gone', 'refused', ...Object.keys(ERRORS)]);

  test('use metrics and labels that these coordinators have', async () => {
    const { near, far } = cluster;
    const provider = await far.provider();
    await until(async () => (await near.chat()).status === 200);
    await (await near.chat({ stream: true })).text();
    expect((await near.chat({ model: 'nobody/serves-this' })).status).toBe(404);
    const families = metricFamilies(await (await near.get('/metrics', far.adminKey)).text());
    const farFamilies = metricFamilies(await (await far.get('/metrics', far.adminKey)).text());
    const definitions = new Metrics().registry;
    const rules = readRules();
    const recorded = new Map(rules.flatMap(({ record, expr }) => (record === undefined ? [] : [[record, expr] as const])));

    /** Labels of a metric, from its samples, or from its definition if there are none. Null: there is no such metric. */
    const labelsOf = (metric: string): readonly string[] | null => {
      if (metric === 'up') return TARGET_LABELS;
      const expr = recorded.get(metric);
      if (expr !== undefined) return parseQuery(expr).groupingLabels;
      const optional = OPTIONAL.get(metric);
      if (optional !== undefined) return [...optional, ...TARGET_LABELS];
      const found = [families, farFamilies].flatMap((all) => all.get(metric) ?? []);
      if (found.length === 0) return null;
      const definition = definitions.getSingleMetric(metric.replace(/_(bucket|sum|count)$/, '')) as { labelNames?: string[] } | undefined;
      return [...found.flatMap((labels) => [...labels.keys()]), ...(definition?.labelNames ?? []), ...TARGET_LABELS];
    };
    const problemsOf = (place: string, expr: string, shownLabels: readonly string[] = []): string[] => {
      const { selectors, groupingLabels } = parseQuery(expr);
      const available = selectors.flatMap(({ metric }) => labelsOf(metric) ?? []);
      return [
        ...selectors.flatMap(({ metric, matchers }) => {
          const labels = labelsOf(metric);
          if (labels === null) return [`${place}: no metric ${metric}`];
          return matchers.filter(({ label }) => !labels.includes(label)).map(({ label }) => `${place}: ${metric} has no label ${label}`);
        }),
        ...selectors
          .flatMap(({ matchers }) => matchers.filter(({ label }) => label === 'end'))
          .flatMap(({ value }) => value.split('|').filter((end) => !ENDS.has(end)))
          .map((end) => `${place}: no request ends with ${end}`),
        ...[...groupingLabels, ...shownLabels].filter((label) => !available.includes(label)).map((label) => `${place}: no label ${label}`),
      ];
    };
    const problems = [
      ...rules.flatMap(({ record, alert, expr, annotations = {} }) => {
        const shown = [
          ...Object.values(annotations)
            .join(' ')
            .matchAll(/\$labels\.(\w+)/g),
        ].map(([, label = '']) => label);
        return problemsOf(record ?? alert ?? '', expr, shown);
      }),
      ...dashboardQueries().flatMap(({ panel, expr, legendLabels }) => problemsOf(panel, expr, legendLabels)),
    ];
    expect(problems).toEqual([]);
    // Proves that the check itself finds mistakes.
    expect(problemsOf('x', 'sum by (nothing) (inference_jobs_total{color="red", end="well"}) + inference_nothing')).toEqual([
      'x: inference_jobs_total has no label color',
      'x: no metric inference_nothing',
      'x: no request ends with well',
      'x: no label nothing',
    ]);
    await provider.close?.();
  });
});
