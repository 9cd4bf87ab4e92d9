/** The trials of `npm run simulate -- --owners N`, which compare a cluster of N coordinators with one, and the columns of their table. */
import type { ClusterOptions, ClusterReport } from './cluster.js';
import { percent, seconds } from './figures.js';
import type { Report } from './statistics.js';

interface Row {
  readonly name: string;
  readonly report: Report;
  /** Null for the row of a single coordinator. */
  readonly cluster: ClusterReport | null;
  readonly single: Report;
}

const DELAYS_MS = [100, 250, 1000];
const LOSS_SHARE = 0.01;

/** In each trial, {@link LOSS_SHARE} of the messages are lost and one coordinator dies. */
export function clusterTrials(owners: number): { readonly title: string; readonly options: ClusterOptions }[] {
  const lossy = { owners, lossShare: LOSS_SHARE, hasDeath: true };
  return [
    ...DELAYS_MS.map((digestDelayMs) => ({
      title: `${owners}, ${digestDelayMs / 1000} s`,
      options: { ...lossy, digestDelayMs, hasPrefixHints: true },
    })),
    { title: `${owners}, 0.1 s, no prefix hints`, options: { ...lossy, digestDelayMs: 100, hasPrefixHints: false } },
  ];
}

export const CLUSTER_COLUMNS: readonly (readonly [string, (row: Row) => string])[] = [
  ['coordinators, delay', ({ name }) => name],
  ['requests', ({ report }) => `${report.requests}`],
  ['refused %', ({ report }) => percent(report.refusedShare)],
  ['wait s mean / p99', ({ report: { wait } }) => `${seconds(wait.mean)} / ${seconds(wait.p99)}`],
  ['first token s mean / p50 / p99', ({ report: { firstToken } }) => formatSpread(firstToken)],
  ['completion s mean / p50 / p99', ({ report: { completion } }) => formatSpread(completion)],
  ['mean against one', ({ report, single, cluster }) => (cluster === null ? '–' : change(report.completion.mean / single.completion.mean))],
  ['known %', ({ report }) => percent(report.cachedShare)],
  ['busy replies %', ({ cluster }) => (cluster === null ? '–' : percent(cluster.busyShare))],
  ['at peers %', ({ cluster }) => (cluster === null ? '–' : percent(cluster.remoteShare))],
  ['queued', ({ cluster }) => (cluster === null ? '–' : `${cluster.queued}`)],
  ['digest characters', ({ cluster }) => (cluster === null ? '–' : `${cluster.digestSize.mean.toFixed(0)} / ${cluster.digestSize.max}`)],
];

function formatSpread({ mean, p50, p99 }: Report['completion']): string {
  return `${seconds(mean)} / ${seconds(p50)} / ${seconds(p99)}`;
}

function change(ratio: number): string {
  return `${ratio < 1 ? '−' : '+'}${Math.abs(100 * (ratio - 1)).toFixed(1)} %`;
}
