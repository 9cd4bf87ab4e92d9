/**
 * `npm run simulate -- [WORLD | sweep | CONSTANT]...`: simulates networks, and prints Markdown tables of the results.
 *
 * WORLD, a scenario of scenarios.ts, compares the scheduler with baselines. `sweep` compares values of the constants in `SWEEP`, CONSTANT
 * those of one. The default is every world and the sweep. docs/scheduler-simulation.md explains the columns.
 *
 * - `--seed N`, `--providers N` and `--hours N` replace these values of each world.
 * - `--owners N` compares one coordinator with a cluster of N.
 */

import { parseArgs } from 'node:util';
import { CLUSTER_COLUMNS, clusterTrials } from './cluster-trials.js';
import { percent, seconds } from './figures.js';
import { BASELINES, type Policy, SCHEDULER } from './policies.js';
import { SCENARIOS, type ScenarioName, SWEEP } from './scenarios.js';
import { type Scenario, simulate, simulateCluster } from './simulate.js';
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
  ['misreporting', ({ misreporting }) => misreporting.toFixed(2)],
  ['loads', ({ loads }) => `${loads}`],
  ['µs a pick', ({ pickUs }) => pickUs.toFixed(0)],
];

function headOf(titles: readonly string[]): string {
  return `| ${titles.join(' | ')} |\n|${titles.map(() => '---').join('|')}|`;
}

function rowOf(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}

const NUMBER = { type: 'string' } as const;
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seed: NUMBER, providers: NUMBER, hours: NUMBER, owners: NUMBER },
});
const known = [...Object.keys(SCENARIOS), 'sweep', ...SWEEP.map(({ constant }) => constant)];
const unknown = positionals.find((name) => !known.includes(name));
const wrong = Object.entries(values).find(([, value]) => !(Number(value) > 0));
if (unknown !== undefined || wrong !== undefined) {
  console.error(
    wrong === undefined ? `unknown world or constant ${unknown}; known are: ${known.join(', ')}` : `--${wrong[0]} must be a number above 0`,
  );
  process.exit(2);
}

const selected = new Set(positionals.length === 0 ? [...Object.keys(SCENARIOS), 'sweep'] : positionals);
for (const name of Object.keys(SCENARIOS) as ScenarioName[]) {
  if (!selected.has(name)) continue;
  if (values.owners === undefined) compare(`## ${name}`, name, [SCHEDULER, ...BASELINES]);
  else compareCluster(name, Number(values.owners));
}
for (const { constant, world, policies } of SWEEP) {
  if (selected.has('sweep') || selected.has(constant)) compare(`## ${constant}, in the world "${world}"`, world, policies);
}

function compare(title: string, name: ScenarioName, policies: readonly Policy[]): void {
  const world = applyOverrides(SCENARIOS[name]);
  console.log(`\n${title}\n\n${describe(world)}\n`);
  console.log(headOf(COLUMNS.map(([column]) => column)));
  let tookMs = 0;
  for (const policy of policies) {
    const outcome = simulate(world, policy);
    console.log(rowOf(COLUMNS.map(([, cell]) => cell(outcome))));
    tookMs += outcome.tookMs;
    if (policy === SCHEDULER) console.error(`${name}: why ${JSON.stringify(outcome.why)}, refused ${JSON.stringify(outcome.refusals)}`);
  }
  console.error(`took ${(tookMs / 1000).toFixed(0)} s`);
}

/** Prints a table: one coordinator, then clusters of `owners` coordinators with different digest delays. */
function compareCluster(name: ScenarioName, owners: number): void {
  const world = applyOverrides(SCENARIOS[name]);
  console.log(`\n## ${name}, ${owners} coordinators\n\n${describe(world)}\n`);
  console.log(headOf(CLUSTER_COLUMNS.map(([column]) => column)));
  const single = simulate(world, SCHEDULER);
  console.log(rowOf(CLUSTER_COLUMNS.map(([, cell]) => cell({ name: 'one coordinator', report: single, cluster: null, single }))));
  for (const { title, options } of clusterTrials(owners)) {
    const outcome = simulateCluster(world, SCHEDULER, options);
    console.log(rowOf(CLUSTER_COLUMNS.map(([, cell]) => cell({ name: title, report: outcome, cluster: outcome, single }))));
    console.error(`${title}: ${(outcome.tookMs / 1000).toFixed(0)} s, ${(process.memoryUsage().rss / 1e6).toFixed(0)} MB`);
    console.error(`why ${JSON.stringify(outcome.why)}, refused ${JSON.stringify(outcome.refusals)}`);
  }
  console.error(`one coordinator: ${(single.tookMs / 1000).toFixed(0)} s`);
}

function describe({ providers, accounts, requestsPerProvider, hours, seed }: Scenario): string {
  return `${providers} providers, ${accounts} accounts, ${requestsPerProvider} requests per provider and hour, ${hours} h, seed ${seed}`;
}

function applyOverrides(world: Scenario): Scenario {
  const { seed, providers, hours } = values;
  return {
    ...world,
    ...(seed === undefined ? {} : { seed: Number(seed) }),
    ...(providers === undefined ? {} : { providers: Number(providers) }),
    ...(hours === undefined ? {} : { hours: Number(hours) }),
  };
}
