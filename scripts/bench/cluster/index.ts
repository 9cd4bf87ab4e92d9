/**
 * Cluster bench: what it costs when coordinators share requests with their peers over NATS.
 *
 * - `CLUSTER_BENCH=plain,streams,first,many` selects sections: processor time of plain answers, of streams, added time to first token,
 *   and processor time beside many peers.
 * - `ROUNDS`, `ANSWERS`, `STREAMS` and `MEMBERS=0,1,2,3` change sizes.
 * - `PROFILE=directory` writes CPU profiles into a directory.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { findPrograms, type InstalledPrograms } from '../../network/cluster/installed-programs.js';
import { StartError } from '../../network/start-error.js';
import { requestBody } from '../relay/answers.js';
import type { PacedLoad, PacedResult } from '../relay/load-generator.js';
import { Processes } from '../relay/sides.js';
import { isSmoke, sized } from '../size.js';
import { median, percentile } from '../statistics.js';
import { BenchCluster } from './bench-cluster.js';
import { benchManyPeers } from './many-peers.js';
import { type Ask, benchProcessorTime } from './processor-time.js';

const SECTIONS = ['plain', 'streams', 'first', 'many'];
const { MEMBERS: members, CLUSTER_BENCH: chosen } = process.env;
/** Numbers of coordinators. 0: one coordinator without NATS. */
const MEMBERS = members?.split(',').map(Number) ?? sized([0, 1, 2, 3], [0, 2]);
/** Connections of the provider in the section `many`. Each has 1024 slots, so that 5,000 streams fit. */
const MANY_SESSIONS = 6;

/** Resolves to whether every target of the selected sections was met. False if NATS or PostgreSQL is not installed. */
export async function benchCluster(): Promise<boolean> {
  const programs = installed();
  if (programs === null) return false;
  const sections = chosen?.split(',') ?? SECTIONS;
  const directory = mkdtempSync(join(tmpdir(), 'inference-bench-'));
  const processes = new Processes(directory);
  try {
    const { child } = await processes.start('load-generator');
    const ask: Ask = (load) => child.ask(load);
    let met = true;
    const kinds = (['plain', 'streams'] as const).filter((kind) => sections.includes(kind));
    if (kinds.length > 0 || sections.includes('first')) {
      met = await withClusters(MEMBERS, programs, async (clusters) => {
        let all = true;
        for (const kind of kinds) all = (await benchProcessorTime(ask, clusters, kind)) && all;
        const pair = clusters.find(({ targets }) => targets.length > 1);
        return sections.includes('first') && pair !== undefined ? (await benchFirstToken(ask, pair)) && all : all;
      });
    }
    if (sections.includes('many')) {
      met = (await withClusters([1], programs, ([cluster]) => benchManyPeers(ask, cluster as BenchCluster), MANY_SESSIONS)) && met;
    }
    return met;
  } finally {
    await processes.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Null if a program is missing; the reason is printed. */
function installed(): InstalledPrograms | null {
  try {
    return findPrograms();
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    console.log(`${isSmoke ? 'skipped' : 'NOT MEASURED'}, 0 figures: ${error.message}`);
    return null;
  }
}

async function withClusters(
  members: readonly number[],
  programs: InstalledPrograms,
  use: (clusters: readonly BenchCluster[]) => Promise<boolean>,
  sessions = 1,
): Promise<boolean> {
  const clusters: BenchCluster[] = [];
  try {
    for (const count of members) clusters.push(await BenchCluster.start({ programs, members: count, sessions }));
    return await use(clusters);
  } finally {
    await Promise.all(clusters.map((cluster) => cluster.stop()));
  }
}

const PAIRS = sized(400, 10);
const WARM_PAIRS = sized(200, 2);
const MAX_ADDED_MS = 1.5;

/**
 * Measures the time to first token that a peer's provider adds, from pairs of a local and a remote request. Needs at least two coordinators.
 * Resolves to whether the target was met.
 */
async function benchFirstToken(ask: Ask, cluster: BenchCluster): Promise<boolean> {
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
