/**
 * Relay bench: compares how fast the coordinator and others pass requests on: a minimal Node relay, and for plain responses also another
 * open-source gateway.
 *
 * Clients, relays (the compared sides) and the providers behind them are separate processes.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Metrics } from '../../../apps/coordinator/dist/telemetry/metrics.js';
import { sized } from '../size.js';
import { cpuSeconds, median, percentile, residentBytes } from '../statistics.js';
import { PLAIN_ANSWER, requestBody, STREAM_END, STREAM_TOKENS } from './answers.js';
import type { ClosedLoad, ClosedResult, PacedLoad, PacedResult } from './load-generator.js';
import { Processes, type Side } from './sides.js';

const ROUNDS = sized(3, 1);
const ROUND_MS = sized(3000, 300);
const AT_ONCE = 32;
/** Warm-up responses before measuring a side, and their deadline. */
const WARM_ANSWERS = sized(4000, 100);
const WARM_STREAMS = sized(400, 40);
const WARM_MS = 20_000;

/** Paced streams, for measuring token latency. */
interface PacedTrial {
  readonly streams: number;
  readonly rounds: number;
  readonly tokens: number;
  readonly everyMs: number;
  /** Time over which the streams start. */
  readonly overMs: number;
}

/** Fifty concurrent streams, twenty started per second. */
const FIFTY: PacedTrial = sized(
  { streams: 50, rounds: 4, tokens: 50, everyMs: 50, overMs: 2500 },
  { streams: 5, rounds: 1, tokens: 10, everyMs: 50, overMs: 250 },
);
/** `RELAY_STREAMS` changes the number of streams, for machines with more cores. The limit of open files must allow as many connections. */
const { RELAY_STREAMS = '5000' } = process.env;
const MANY: PacedTrial = sized(
  { streams: Number(RELAY_STREAMS), rounds: 1, tokens: 25, everyMs: 1000, overMs: 12_000 },
  { streams: 50, rounds: 1, tokens: 3, everyMs: 200, overMs: 400 },
);
/** Maximum pause within a stream. Streams have one token per second, so a longer pause means starvation. */
const STARVED_MS = 4000;
const GIB = 1024 ** 3;

/** Runs a load on a side, and adds the CPU time of relay and provider to the result. */
type Load = (side: Side, load: object) => Promise<Record<string, unknown>>;

/** `RELAY_BENCH=streams,plain` selects sections. */
const SECTIONS: Readonly<Record<string, (processes: Processes, load: Load) => Promise<boolean>>> = {
  streams: streamThroughput,
  plain: plainThroughput,
  first: firstToken,
  many: manyStreams,
};

/** Resolves to whether every target was met. */
export async function benchRelay(): Promise<boolean> {
  const directory = mkdtempSync(join(tmpdir(), 'inference-bench-'));
  let met = true;
  const { RELAY_BENCH: chosen } = process.env;
  const only = chosen?.split(',') ?? Object.keys(SECTIONS);
  for (const [name, section] of Object.entries(SECTIONS)) {
    if (!only.includes(name)) continue;
    const processes = new Processes(directory);
    try {
      const generator = await processes.start('load-generator');
      const load: Load = async (side, work) => {
        const before = { relay: cpuSeconds(side.pid), provider: cpuSeconds(side.providerPid), clients: cpuSeconds(generator.child.pid) };
        const result = await generator.child.ask({ target: side.target, ...work });
        const relayCpu = cpuSeconds(side.pid) - before.relay;
        return { ...result, relayCpu, providerCpu: cpuSeconds(side.providerPid) - before.provider };
      };
      met = (await section(processes, load)) && met;
    } finally {
      await processes.stop();
    }
  }
  rmSync(directory, { recursive: true, force: true });
  return met;
}

interface Rates {
  readonly perSecond: number[];
  /** CPU microseconds of the relay's process, all threads, per response. */
  readonly relayCpu: number[];
  readonly providerCpu: number[];
}

async function streamThroughput(processes: Processes, load: Load): Promise<boolean> {
  console.log(`streams of ${STREAM_TOKENS} tokens, ${AT_ONCE} at once`);
  const bare = await processes.bareRelay();
  const ours = await processes.coordinator('streams', 'agent');
  const frames = await processes.coordinator('frame-per-token', 'frame-per-token');
  const [bareRates, ourRates, frameRates] = await byTurns(load, [bare, ours, frames], true);
  printRates(bare.name, bareRates, STREAM_TOKENS);
  printRates(ours.name, ourRates, STREAM_TOKENS);
  printRates('with a sealed frame for each token, the worst case', frameRates, STREAM_TOKENS);
  console.log(`  CPU per token, bare relay to coordinator ${ratio(bareRates.relayCpu, ourRates.relayCpu).toFixed(3)}`);
  return meetsTarget('tokens/s, coordinator to bare relay', ratio(ourRates.perSecond, bareRates.perSecond), 0.85);
}

async function plainThroughput(processes: Processes, load: Load): Promise<boolean> {
  console.log(`plain answers, ${AT_ONCE} at once`);
  const bare = await processes.bareRelay();
  const gateway = await processes.gateway();
  const ours = await processes.coordinator('plain', 'agent');
  const [bareRates, gatewayRates, ourRates] = await byTurns(load, [bare, gateway, ours], false);
  printRates(bare.name, bareRates, 1);
  printRates('@portkey-ai/gateway as a mere proxy', gatewayRates, 1);
  printRates(ours.name, ourRates, 1);
  console.log(`  CPU per answer, bare relay to coordinator ${ratio(bareRates.relayCpu, ourRates.relayCpu).toFixed(3)}`);
  let met = staysBelow('CPU per answer, coordinator to @portkey-ai/gateway', ratio(ourRates.relayCpu, gatewayRates.relayCpu), 0.6);
  met = meetsTarget('requests/s, coordinator to bare relay', ratio(ourRates.perSecond, bareRates.perSecond), 0.2) && met;
  return meetsTarget('requests/s, coordinator to @portkey-ai/gateway', ratio(ourRates.perSecond, gatewayRates.perSecond), 1.6) && met;
}

/** Measures the sides in alternation, after a warm-up. */
async function byTurns(load: Load, sides: readonly [Side, Side, Side], stream: boolean): Promise<[Rates, Rates, Rates]> {
  const rates = sides.map((): Rates => ({ perSecond: [], relayCpu: [], providerCpu: [] })) as [Rates, Rates, Rates];
  const body = requestBody(stream);
  const ending = stream ? STREAM_END : PLAIN_ANSWER;
  const work = { kind: 'closed', body, atOnce: AT_ONCE, durationMs: ROUND_MS, answers: null, ending } satisfies Omit<ClosedLoad, 'target'>;
  for (const side of sides) await load(side, { ...work, durationMs: WARM_MS, answers: stream ? WARM_STREAMS : WARM_ANSWERS });
  for (let round = 0; round < ROUNDS; round++) {
    for (const [index, side] of sides.entries()) {
      const { answers, seconds, relayCpu, providerCpu } = (await load(side, work)) as unknown as ClosedResult & CpuOfRound;
      rates[index]?.perSecond.push(answers / seconds);
      rates[index]?.relayCpu.push((relayCpu / answers) * 1e6);
      rates[index]?.providerCpu.push((providerCpu / answers) * 1e6);
    }
  }
  return rates;
}

interface CpuOfRound {
  readonly relayCpu: number;
  readonly providerCpu: number;
}

async function firstToken(processes: Processes, load: Load): Promise<boolean> {
  const sides = [await processes.bareRelay(), await processes.coordinator('first-token', 'agent')] as const;
  console.log(`time to the first token, ${FIFTY.streams} streams at once`);
  const results: [PacedResult[], PacedResult[]] = [[], []];
  await pacedLoad(load, sides[1], { ...FIFTY, rounds: 1 });
  for (let round = 0; round < ROUNDS; round++) {
    for (const [index, side] of sides.entries()) results[index]?.push(await pacedLoad(load, side, FIFTY));
  }
  const added = (of: (result: PacedResult) => readonly number[], share: number): number => {
    const middle = (list: readonly PacedResult[]): number => median(list.map((result) => percentile(of(result), share)));
    const [bare, ours] = [middle(results[0]), middle(results[1])];
    console.log(`  p${share * 100}: bare relay ${bare.toFixed(2)} ms, coordinator ${ours.toFixed(2)} ms`);
    return ours - bare;
  };
  let met = staysBelow(
    'added to the first token at p50, ms',
    added((result) => result.firstMs, 0.5),
    1.5,
  );
  met =
    staysBelow(
      'added to the first token at p99, ms',
      added((result) => result.firstMs, 0.99),
      4,
    ) && met;
  console.log(`  of the later tokens:`);
  console.log(`  added at p99 ${added((result) => result.tokenMs, 0.99).toFixed(2)} ms`);
  console.log(`  counting a write takes ${costOfMetrics().toFixed(2)} µs of CPU`);
  return met;
}

/** CPU microseconds for counting one write to a client in the metrics. */
function costOfMetrics(): number {
  const metrics = new Metrics();
  const writes = 200_000;
  for (let warm = 0; warm < writes; warm++) metrics.relayed(warm % 7);
  const before = process.cpuUsage();
  for (let write = 0; write < writes; write++) metrics.relayed(write % 7);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / writes;
}

async function manyStreams(processes: Processes, load: Load): Promise<boolean> {
  console.log(`${MANY.streams} streams at once, each a token per second`);
  const bare = await processes.bareRelay();
  const bareResult = await pacedLoad(load, bare, MANY);
  const ours = await processes.coordinator('many-streams', 'agent', 1 + Math.ceil(MANY.streams / 1024));
  let resident = 0;
  const watch = setInterval(() => {
    resident = Math.max(resident, residentBytes(ours.pid));
  }, 250);
  const result = await pacedLoad(load, ours, MANY);
  clearInterval(watch);
  const added = percentile(result.tokenMs, 0.99) - percentile(bareResult.tokenMs, 0.99);
  for (const [name, { tokenMs, longestGapMs, relayCpu }] of [
    ['bare relay', bareResult],
    ['coordinator', result],
  ] as const) {
    console.log(
      `  ${name}: a token takes ${percentile(tokenMs, 0.5).toFixed(2)} ms at p50, ${percentile(tokenMs, 0.99).toFixed(1)} ms at p99; ` +
        `longest pause ${(longestGapMs / 1000).toFixed(2)} s; ${Math.round((relayCpu / MANY.streams / MANY.tokens) * 1e6)} µs of CPU per token`,
    );
  }
  let met = staysBelow('added to a token at p99, ms', added, 50);
  met = staysBelow('memory of the coordinator, GiB', resident / GIB, 1) && met;
  met = staysBelow('longest pause of a stream, ms', result.longestGapMs, STARVED_MS) && met;
  return meetsTarget('streams at once', result.peak, MANY.streams) && met;
}

async function pacedLoad(load: Load, side: Side, trial: PacedTrial): Promise<PacedResult & CpuOfRound> {
  const { streams, rounds, overMs, tokens, everyMs } = trial;
  const work: Omit<PacedLoad, 'target'> = { kind: 'paced', body: requestBody(true, { tokens, everyMs }), streams, rounds, overMs, tokens };
  return (await load(side, work)) as unknown as PacedResult & CpuOfRound;
}

/** Ratio of medians, which a single disturbed round does not change. */
function ratio(ours: readonly number[], others: readonly number[]): number {
  return median(ours) / median(others);
}

function meetsTarget(what: string, value: number, min: number): boolean {
  const met = value >= min;
  console.log(`  ${what} ${value.toFixed(3)} (target: at least ${min}): ${met ? 'met' : 'MISSED'}`);
  return met;
}

function staysBelow(what: string, value: number, max: number): boolean {
  const met = value <= max;
  console.log(`  ${what} ${value.toFixed(2)} (target: at most ${max}): ${met ? 'met' : 'MISSED'}`);
  return met;
}

function printRates(name: string, { perSecond, relayCpu, providerCpu }: Rates, unitsPerAnswer: number): void {
  const unit = unitsPerAnswer === 1 ? 'requests/s' : 'tokens/s';
  const rate = (value: number): string => Math.round(value * unitsPerAnswer).toLocaleString('en');
  const cpu = median(relayCpu);
  const perToken = unitsPerAnswer === 1 ? '' : ` (${(cpu / unitsPerAnswer).toFixed(1)} per token)`;
  console.log(
    `  ${name}: ${rate(median(perSecond))} ${unit} (${rate(Math.min(...perSecond))} to ${rate(Math.max(...perSecond))}), ` +
      `${Math.round(cpu)} µs of CPU per answer${perToken}, ${Math.round(median(providerCpu))} µs behind it; load ${loadavg()[0]?.toFixed(1)}`,
  );
}
