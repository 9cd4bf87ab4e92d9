/**
 * Sections `plain` and `streams` of the cluster bench: processor time per answer of coordinators, NATS and PostgreSQL together.
 *
 * In clusters of several coordinators, 0, 50 or 100 % of the answers are remote: from a provider that is connected to a peer.
 */
import { loadavg } from 'node:os';
import { PLAIN_ANSWER, requestBody, STREAM_END } from '../relay/answers.js';
import type { ClosedLoad, ClosedResult } from '../relay/load-generator.js';
import { sized } from '../size.js';
import { median } from '../statistics.js';
import type { BenchCluster, ClusterCpu } from './bench-cluster.js';

const { ROUNDS: rounds, ANSWERS: answers } = process.env;
const ROUNDS = Number(rounds ?? sized(5, 1));
/** Answers per coordinator. The same in every cluster, so that results compare. */
const ANSWERS = Number(answers ?? sized(500, 20));
const WARM_ANSWERS = 2 * ANSWERS;
/** Concurrent requests per coordinator. */
const AT_ONCE = sized(16, 4);
/** Time limit of a round, far above the duration on any machine. */
const MAX_ROUND_MS = 600_000;
/** Maximum ratio to the coordinator without NATS, without remote answers. */
const MAX_LOCAL_RATIO = 1.05;
/** Maximum ratio to the coordinator without NATS, with remote answers only. */
const MAX_REMOTE_RATIO = 1.3;

/** Sends a load to the load generator, and resolves to the result. */
export type Ask = (load: object) => Promise<Record<string, unknown>>;

interface Variant {
  readonly name: string;
  readonly cluster: BenchCluster;
  readonly remotePercent: 0 | 50 | 100;
  /** Maximum ratio to the coordinator without NATS; null: no target. */
  readonly maxRatio: number | null;
  readonly rounds: ClusterCpu[];
}

/** The first of `clusters` must be one coordinator without NATS, the baseline. Resolves to whether the targets were met. */
export async function benchProcessorTime(ask: Ask, clusters: readonly BenchCluster[], kind: 'plain' | 'streams'): Promise<boolean> {
  const variants = clusters.flatMap((cluster): Variant[] => {
    if (cluster.natsUrl === '') return [{ name: 'one coordinator without NATS', cluster, remotePercent: 0, maxRatio: null, rounds: [] }];
    const { length: size } = cluster.targets;
    return ([0, 50, 100] as const).slice(0, size === 1 ? 1 : 3).map((remotePercent) => {
      const maxRatio = remotePercent === 0 ? MAX_LOCAL_RATIO : remotePercent === 100 ? MAX_REMOTE_RATIO : null;
      return { name: `cluster of ${size}, ${remotePercent} % remote`, cluster, remotePercent, maxRatio, rounds: [] };
    });
  });
  // Warm-up with local and remote answers, so that the code of every coordinator is compiled before measuring.
  for (const variant of variants) {
    const isMixed = variant.cluster.targets.length > 1;
    if (variant.remotePercent === (isMixed ? 50 : 0)) await run(ask, variant, kind, WARM_ANSWERS);
  }
  for (let round = 0; round < ROUNDS; round++) {
    for (const variant of variants) variant.rounds.push(await run(ask, variant, kind, ANSWERS));
  }
  const what = kind === 'plain' ? 'plain answers' : 'streams of 256 tokens';
  console.log(`${what}, ${AT_ONCE} at once and ${ANSWERS} a round at each coordinator, ${ROUNDS} rounds; load ${loadavg()[0]?.toFixed(1)}`);
  console.log('microseconds of processor time per answer: coordinators + NATS + PostgreSQL');
  const [baseline] = variants;
  return variants.map((variant) => report(variant, baseline?.rounds ?? [])).every((met) => met);
}

function report({ name, rounds, maxRatio }: Variant, baseline: readonly ClusterCpu[]): boolean {
  const part = (of: (cpu: ClusterCpu) => number): string => Math.round(median(rounds.map(of)) * 1e6).toString();
  const sums = rounds.map(total);
  const ratio = median(sums.map((sum, round) => sum / (baseline[round] === undefined ? Number.NaN : total(baseline[round]))));
  const met = maxRatio === null || ratio <= maxRatio;
  const target = maxRatio === null ? '' : ` (target: at most ${maxRatio}): ${met ? 'met' : 'MISSED'}`;
  console.log(
    `  ${name}: ${part(total)} = ${part(({ coordinators }) => coordinators)} + ${part(({ nats }) => nats)} + ` +
      `${part(({ postgres }) => postgres)}; ratio ${ratio.toFixed(3)}${target}`,
  );
  return met;
}

function total({ coordinators, nats, postgres }: ClusterCpu): number {
  return coordinators + nats + postgres;
}

/** Runs the load on one cluster. Resolves to the processor time per answer, in seconds. */
async function run(ask: Ask, { cluster, remotePercent }: Variant, kind: 'plain' | 'streams', perCoordinator: number): Promise<ClusterCpu> {
  const { targets } = cluster;
  const isStream = kind === 'streams';
  // The load alternates between these requests, two per coordinator. At 50 %, the first is local and the second is remote.
  const requests = [0, 1].flatMap((half) =>
    targets.map((target, index) => {
      const isRemote = remotePercent === 100 || (remotePercent === 50 && half === 1);
      return { target, body: requestBody(isStream, null, cluster.modelOf(isRemote ? index + 1 : index)) };
    }),
  );
  const [first, ...others] = requests as [(typeof requests)[number], ...typeof requests];
  const load: ClosedLoad = {
    kind: 'closed',
    ...first,
    others,
    atOnce: AT_ONCE * targets.length,
    durationMs: MAX_ROUND_MS,
    answers: perCoordinator * targets.length,
    ending: isStream ? STREAM_END : PLAIN_ANSWER,
  };
  const before = cluster.cpu;
  const { answers } = (await ask(load)) as unknown as ClosedResult;
  const after = cluster.cpu;
  const per = (part: keyof ClusterCpu): number => (after[part] - before[part]) / answers;
  return { coordinators: per('coordinators'), nats: per('nats'), postgres: per('postgres') };
}
