/**
 * Section `many` of the cluster bench: processor time of a coordinator per streamed token, alone and beside 199 simulated peers, which only
 * tell each other their free capacity.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { spawnChild } from '../../network/child.js';
import { requestBody } from '../relay/answers.js';
import type { PacedLoad, PacedResult } from '../relay/load-generator.js';
import { sized } from '../size.js';
import { cpuSeconds, median, percentile } from '../statistics.js';
import type { BenchCluster } from './bench-cluster.js';
import type { Ask } from './processor-time.js';

const ROUNDS = sized(3, 1);
const PEERS = sized(199, 20);
/** Each simulated peer reports this number of models, all changed with every heartbeat. */
const MODELS_PER_PEER = sized(10, 3);
const { STREAMS: streamCount } = process.env;
const STREAMS = Number(streamCount ?? sized(5000, 20));
const TOKENS = sized(25, 3);
const TOKEN_MS = sized(1000, 200);
/** Time over which the streams start. */
const SPREAD_MS = sized(12_000, 400);
/** Maximum processor time beside peers, relative to alone. */
const MAX_RATIO = 1.1;

interface Round {
  /** Microseconds of the coordinator's processor time per token. */
  readonly cpu: number;
  /** Milliseconds between tokens. */
  readonly p50: number;
  /** Milliseconds between tokens. */
  readonly p99: number;
}

/** Needs a cluster of one coordinator, with slots for all streams. Resolves to whether the target was met. */
export async function benchManyPeers(ask: Ask, cluster: BenchCluster): Promise<boolean> {
  const directory = mkdtempSync(join(tmpdir(), 'inference-bench-'));
  const script = fileURLToPath(new URL('replayed-peers.mjs', import.meta.url));
  const peers = await spawnChild({
    name: 'replayed-peers',
    argv: [script, cluster.natsUrl, 'coordinator-0', String(PEERS), String(MODELS_PER_PEER), cluster.modelOf(0)],
    env: process.env,
    logFile: join(directory, 'replayed-peers.log'),
  });
  try {
    await peers.message;
    await measureStreams(ask, cluster);
    const alone: Round[] = [];
    const beside: Round[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      alone.push(await measureStreams(ask, cluster));
      await peers.ask({ isOn: true });
      beside.push(await measureStreams(ask, cluster));
      await peers.ask({ isOn: false });
    }
    console.log(`${STREAMS} streams, a token every ${TOKEN_MS} ms, ${ROUNDS} rounds; load ${loadavg()[0]?.toFixed(1)}`);
    print('alone', alone);
    print(`beside ${PEERS} peers with ${MODELS_PER_PEER} changed models a second each`, beside);
    const ratio = median(beside.map(({ cpu }, round) => cpu / (alone[round]?.cpu ?? Number.NaN)));
    const met = ratio <= MAX_RATIO;
    console.log(
      `  processor time per token, beside to alone ${ratio.toFixed(3)} (target: at most ${MAX_RATIO}): ${met ? 'met' : 'MISSED'}`,
    );
    return met;
  } finally {
    await peers.stop(3000);
    rmSync(directory, { recursive: true, force: true });
  }
}

async function measureStreams(ask: Ask, cluster: BenchCluster): Promise<Round> {
  const [target] = cluster.targets;
  if (target === undefined) throw new Error('the cluster has no coordinator');
  const body = requestBody(true, { tokens: TOKENS, everyMs: TOKEN_MS }, cluster.modelOf(0));
  const load: PacedLoad = { kind: 'paced', target, body, streams: STREAMS, rounds: 1, overMs: SPREAD_MS, tokens: TOKENS };
  const before = cpuSeconds(cluster.coordinatorPid);
  const { tokenMs } = (await ask(load)) as unknown as PacedResult;
  const cpu = ((cpuSeconds(cluster.coordinatorPid) - before) / (STREAMS * TOKENS)) * 1e6;
  return { cpu, p50: percentile(tokenMs, 0.5), p99: percentile(tokenMs, 0.99) };
}

function print(name: string, rounds: readonly Round[]): void {
  const middle = (of: (round: Round) => number): string => median(rounds.map(of)).toFixed(1);
  console.log(
    `  ${name}: ${middle(({ cpu }) => cpu)} µs of processor time per token; a token takes ` +
      `${middle(({ p50 }) => p50)} ms at p50, ${middle(({ p99 }) => p99)} ms at p99`,
  );
}
