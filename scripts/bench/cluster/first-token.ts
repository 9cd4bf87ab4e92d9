/** Cluster bench, section `first`: time to first token that a peer's provider adds, from pairs of a local and a remote request. */
import { loadavg } from 'node:os';
import { requestBody } from '../relay/answers.js';
import type { PacedLoad, PacedResult } from '../relay/load-generator.js';
import { sized } from '../size.js';
import { median, percentile } from '../statistics.js';
import type { BenchCluster } from './bench-cluster.js';
import type { Ask } from './processor-time.js';

const PAIRS = sized(400, 10);
const WARM_PAIRS = sized(200, 2);
const MAX_ADDED_MS = 1.5;

/** Needs at least two coordinators. Resolves to whether the target was met. */
export async function benchFirstToken(ask: Ask, cluster: BenchCluster): Promise<boolean> {
  const [target] = cluster.targets;
  if (target === undefined) throw new Error('the cluster has no coordinator');
  const firstMs = async (owner: number): Promise<number> => {
    const body = requestBody(true, { tokens: 2, everyMs: 1 }, cluster.modelOf(owner));
    const load: PacedLoad = { kind: 'paced', target, body, streams: 1, rounds: 1, overMs: 0, tokens: 2 };
    return ((await ask(load)) as unknown as PacedResult).firstMs[0] ?? Number.NaN;
  };
  const local: number[] = [];
  const remote: number[] = [];
  for (let pair = -WARM_PAIRS; pair < PAIRS; pair++) {
    // Alternating order cancels effects of one request on the next.
    const order = pair % 2 === 0 ? [0, 1] : [1, 0];
    const measured = [0, 0];
    for (const owner of order) measured[owner] = await firstMs(owner);
    if (pair < 0) continue;
    local.push(measured[0] ?? Number.NaN);
    remote.push(measured[1] ?? Number.NaN);
  }
  const differences = remote.map((ms, pair) => ms - (local[pair] ?? Number.NaN)).sort((a, b) => a - b);
  const added = median(differences);
  const met = added <= MAX_ADDED_MS;
  console.log(`time to the first token, ${PAIRS} pairs of one request at a time; load ${loadavg()[0]?.toFixed(1)}`);
  console.log(`  p50: local ${median(local).toFixed(2)} ms, remote ${median(remote).toFixed(2)} ms`);
  console.log(`  added by pairs: p10 ${percentile(differences, 0.1).toFixed(2)} ms, p90 ${percentile(differences, 0.9).toFixed(2)} ms`);
  console.log(`  added at p50, ms ${added.toFixed(2)} (target: at most ${MAX_ADDED_MS}): ${met ? 'met' : 'MISSED'}`);
  return met;
}
