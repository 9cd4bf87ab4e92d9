/**
 * End-to-end bench: compares processor time, time to first token and transferred bytes of end-to-end and plain requests.
 *
 * In end-to-end mode the client encrypts, in plain mode the coordinator. `PROFILE=directory` writes a CPU profile of the coordinator.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Child } from '../../network/child.js';
import { COORDINATOR } from '../../network/network.js';
import { requestBody } from '../relay/answers.js';
import { Processes, type Side } from '../relay/sides.js';
import { sized } from '../size.js';
import { cpuSeconds, median } from '../statistics.js';
import type { Connect, Load, LoadResult, Mode, Pairs, PairsResult } from './client.js';

const MODES: readonly Mode[] = ['plain', 'e2e'];
const PROVIDERS = 3;
const ROUNDS = sized(5, 1);
const STREAM_TOKENS = 64;
/** Fifty tokens per second, a common rate of one stream. */
const TOKEN_EVERY_MS = 20;
const STREAM = requestBody(true, { tokens: STREAM_TOKENS, everyMs: TOKEN_EVERY_MS });

/** Requests per second of the paced comparison. */
const PLAIN_PER_SECOND = 100;
/** Answers per mode and round, and concurrency. */
const PLAIN = { name: 'plain answers', body: requestBody(false), ...sized({ answers: 1000, atOnce: 16 }, { answers: 20, atOnce: 4 }) };
/** Equal rate in both modes. At full speed, the ledger's group commit gathers more steps per transaction in the faster mode. */
const PACED = { ...PLAIN, name: `plain answers, ${PLAIN_PER_SECOND} per second`, answers: sized(300, 20), perSecond: PLAIN_PER_SECOND };
const STREAMS = {
  name: `streams of ${STREAM_TOKENS} tokens, one every ${TOKEN_EVERY_MS} ms`,
  body: STREAM,
  ...sized({ answers: 256, atOnce: 64 }, { answers: 4, atOnce: 4 }),
};
const FIRST_TOKEN_PAIRS = sized(400, 5);
const BYTES_PAIRS = sized(5, 1);

/** Targets: ratio of end-to-end to plain, or milliseconds of end-to-end above plain. */
const MAX_COORDINATOR_RATIO = 0.8;
const MAX_CLIENT_OVERHEAD_MS = 1.5;
const MAX_FIRST_TOKEN_OVERHEAD_MS = 1.5;
const MAX_BYTES_RATIO = 1.15;

/** Resolves to whether every target was met. */
export async function benchE2e(): Promise<boolean> {
  const directory = mkdtempSync(join(tmpdir(), 'inference-bench-'));
  const processes = new Processes(directory);
  try {
    const { PROFILE: profiles } = process.env;
    const argv = profiles === undefined ? undefined : ['--cpu-prof', `--cpu-prof-dir=${profiles}`, COORDINATOR];
    const side = await processes.coordinator('e2e', 'agent', PROVIDERS, argv);
    const { child } = await processes.start('client', [], import.meta.url);
    await child.ask({ kind: 'connect', target: side.target } satisfies Connect);
    const results = [
      await processorTime(side, child, PLAIN),
      await processorTime(side, child, PACED),
      await processorTime(side, child, STREAMS),
      await firstToken(child),
      await connectionBytes(child),
    ];
    return results.every((isMet) => isMet);
  } finally {
    await processes.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Processor time per answer of one mode in milliseconds, one figure per round. */
interface Cost {
  readonly coordinator: number[];
  readonly client: number[];
}

type Work = Omit<Load, 'kind' | 'mode'> & { readonly name: string };

async function processorTime(side: Side, client: Child, { name, ...work }: Work): Promise<boolean> {
  console.log(`${name}, ${work.perSecond === undefined ? '' : 'at most '}${work.atOnce} at once: processor time of each`);
  const costs: Readonly<Record<Mode, Cost>> = { plain: { coordinator: [], client: [] }, e2e: { coordinator: [], client: [] } };
  const run = async (mode: Mode): Promise<{ readonly coordinator: number; readonly client: number }> => {
    const before = cpuSeconds(side.pid);
    const { cpuMs } = (await client.ask({ kind: 'load', mode, ...work } satisfies Load)) as unknown as LoadResult;
    return { coordinator: ((cpuSeconds(side.pid) - before) * 1000) / work.answers, client: cpuMs / work.answers };
  };
  // Warm-up: the first round of each mode runs uncompiled code.
  for (const mode of MODES) await run(mode);
  for (let round = 0; round < ROUNDS; round++) {
    for (const mode of MODES) {
      const cost = await run(mode);
      costs[mode].coordinator.push(cost.coordinator);
      costs[mode].client.push(cost.client);
    }
  }
  for (const mode of MODES) {
    const { coordinator, client: own } = costs[mode];
    console.log(`  ${label(mode)}: coordinator ${median(coordinator).toFixed(2)} ms, client ${median(own).toFixed(2)} ms`);
  }
  const { plain, e2e } = costs;
  const ratio = median(e2e.coordinator.map((value, round) => value / (plain.coordinator[round] as number)));
  const overheadMs = median(e2e.client.map((value, round) => value - (plain.client[round] as number)));
  const isMet = meetsTarget('coordinator, end-to-end to plain', ratio, MAX_COORDINATOR_RATIO, '');
  return meetsTarget('client, end-to-end minus plain', overheadMs, MAX_CLIENT_OVERHEAD_MS, ' ms') && isMet;
}

async function firstToken(client: Child): Promise<boolean> {
  console.log('first token, one stream at a time');
  const body = requestBody(true, { tokens: 2, everyMs: 1 });
  const { plain, e2e } = await pairs(client, { kind: 'first_token', body, pairs: FIRST_TOKEN_PAIRS });
  console.log(`  p50: plain ${median(plain).toFixed(2)} ms, end-to-end ${median(e2e).toFixed(2)} ms`);
  return meetsTarget('p50, end-to-end minus plain', median(e2e) - median(plain), MAX_FIRST_TOKEN_OVERHEAD_MS, ' ms');
}

async function connectionBytes(client: Child): Promise<boolean> {
  console.log(`bytes on the client's connection, ${STREAMS.name}`);
  const { plain, e2e } = await pairs(client, { kind: 'bytes', body: STREAM, pairs: BYTES_PAIRS });
  console.log(`  plain ${median(plain)}, end-to-end ${median(e2e)}`);
  return meetsTarget('end-to-end to plain', median(e2e) / median(plain), MAX_BYTES_RATIO, '');
}

/** Runs pairs of requests. A first, uncounted pair opens the connections. */
async function pairs(client: Child, work: Pairs): Promise<PairsResult> {
  await client.ask({ ...work, pairs: 1 } satisfies Pairs);
  return (await client.ask(work)) as unknown as PairsResult;
}

function label(mode: Mode): string {
  return mode === 'e2e' ? 'end-to-end' : 'plain';
}

function meetsTarget(name: string, value: number, max: number, unit: string): boolean {
  const isMet = value <= max;
  console.log(`  ${name}: ${value.toFixed(2)}${unit} (target: at most ${max}${unit}, ${isMet ? 'met' : 'MISSED'})`);
  return isMet;
}
