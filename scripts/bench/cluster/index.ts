/**
 * Cluster bench: processor time relative to one coordinator without NATS, the time to first token that peers add, and the processor
 * time that 199 simulated peers cost.
 *
 * - `CLUSTER_BENCH=plain,streams,first,many` selects sections.
 * - `ROUNDS`, `ANSWERS`, `STREAMS` and `MEMBERS=0,1,2,3` change sizes.
 * - `PROFILE=directory` writes CPU profiles into a directory.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findPrograms, type InstalledPrograms } from '../../network/cluster/installed-programs.js';
import { StartError } from '../../network/start-error.js';
import { Processes } from '../relay/sides.js';
import { isSmoke, sized } from '../size.js';
import { BenchCluster } from './bench-cluster.js';
import { benchFirstToken } from './first-token.js';
import { benchManyPeers } from './many-peers.js';
import { type Ask, benchProcessorTime } from './processor-time.js';

const SECTIONS = ['plain', 'streams', 'first', 'many'];
const { MEMBERS: members, CLUSTER_BENCH: chosen } = process.env;
/** Sizes of the clusters. 0 stands for a coordinator without NATS. */
const MEMBERS = members?.split(',').map(Number) ?? sized([0, 1, 2, 3], [0, 2]);
/** Connections with 1024 slots each, for 5,000 streams. */
const MANY_SESSIONS = 6;

/** Resolves to whether every target was met. */
export async function benchCluster(): Promise<boolean> {
  const programs = installed();
  if (programs === null) return false;
  const only = chosen?.split(',') ?? SECTIONS;
  const directory = mkdtempSync(join(tmpdir(), 'inference-bench-'));
  const processes = new Processes(directory);
  try {
    const { child } = await processes.start('load-generator');
    const ask: Ask = (load) => child.ask(load);
    let met = true;
    const kinds = (['plain', 'streams'] as const).filter((kind) => only.includes(kind));
    if (kinds.length > 0 || only.includes('first')) {
      met = await withClusters(MEMBERS, programs, async (clusters) => {
        let all = true;
        for (const kind of kinds) all = (await benchProcessorTime(ask, clusters, kind)) && all;
        const pair = clusters.find(({ targets }) => targets.length > 1);
        return only.includes('first') && pair !== undefined ? (await benchFirstToken(ask, pair)) && all : all;
      });
    }
    if (only.includes('many')) {
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
