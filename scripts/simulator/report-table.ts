/** Reports as a table, one row each. */
import type { Report } from './statistics.js';

const COLUMNS: readonly (readonly [string, (report: Report) => string])[] = [
  ['', ({ policy }) => policy],
  ['requests', ({ requests }) => `${requests}`],
  ['refused %', ({ refusedShare }) => percent(refusedShare)],
  ['used %', ({ utilisation }) => percent(utilisation)],
  ['wait s mean / p50 / p99', ({ wait }) => `${seconds(wait.mean)} / ${seconds(wait.p50)} / ${seconds(wait.p99)}`],
  ['first token s mean / p50 / p99', ({ firstToken: { mean, p50, p99 } }) => `${seconds(mean)} / ${seconds(p50)} / ${seconds(p99)}`],
  ['completion s mean / p50 / p99', ({ completion: { mean, p50, p99 } }) => `${seconds(mean)} / ${seconds(p50)} / ${seconds(p99)}`],
  ['fairness', ({ fairness }) => fairness.toFixed(3)],
  ['idle for an hour %', ({ idleShare }) => (Number.isNaN(idleShare) ? '–' : percent(idleShare))],
  ['cost s', ({ costMs }) => seconds(costMs)],
  ['known %', ({ cachedShare }) => percent(cachedShare)],
  ['faults ‰', ({ faults }) => faults.toFixed(1)],
  ['liars', ({ liars }) => liars.toFixed(2)],
  ['loads', ({ loads }) => `${loads}`],
  ['µs a pick', ({ pickUs }) => pickUs.toFixed(0)],
];

export function headOf(): string {
  return `| ${COLUMNS.map(([title]) => title).join(' | ')} |\n|${COLUMNS.map(() => '---').join('|')}|`;
}

export function rowOf(report: Report): string {
  return `| ${COLUMNS.map(([, cell]) => cell(report)).join(' | ')} |`;
}

function percent(share: number): string {
  return (100 * share).toFixed(share < 0.1 ? 2 : 1);
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(ms < 10_000 ? 2 : 1);
}
