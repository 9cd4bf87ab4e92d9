/**
 * Bench of the relay: the coordinator with keys, sealing, verification and its store, against a bare Node relay that does
 * none of it, by turns in the same run. Prints both sides and the ratios; exits 1 when a ratio misses its target.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Child, spawnChild } from '../../network/child.js';
import { startCoordinatorAlone } from '../../network/network.js';
import { type LoadResult, runLoad } from '../load.js';
import { cpuSeconds, median, percentile } from '../statistics.js';
import { STREAM_TOKENS } from './answers.js';

const ROUNDS = 3;
const ROUND_MS = 4000;
const STREAMS_AT_ONCE = 32;
const PLAIN_AT_ONCE = 32;

/** One kind of answer, and the ratio that is to be reached; null where the figure is for information. */
interface Comparison {
  readonly title: string;
  readonly stream: boolean;
  readonly side: 'ours' | 'framePerToken';
  readonly target: number | null;
}

const COMPARISONS: readonly Comparison[] = [
  { title: `streams of ${STREAM_TOKENS} tokens, ${STREAMS_AT_ONCE} at once`, stream: true, side: 'ours', target: 0.5 },
  { title: 'the same with a sealed frame for each token, the worst case', stream: true, side: 'framePerToken', target: null },
  { title: `plain answers, ${PLAIN_AT_ONCE} at once`, stream: false, side: 'ours', target: 0.15 },
];

interface Side {
  readonly name: string;
  /** Process of the relay itself, for its CPU time. */
  readonly pid: number;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

interface Measured {
  readonly perSecond: number;
  readonly firstByteP50: number;
  readonly firstByteP99: number;
  /** Microseconds of CPU that the relay's process took per answer. */
  readonly cpuPerAnswer: number;
}

/** Runs the bench. Resolves to whether every target was met. */
export async function benchRelay(): Promise<boolean> {
  const directory = mkdtempSync(join(tmpdir(), 'inference-bench-'));
  const children: Child[] = [];
  try {
    const bare = await startBareSide(directory, children);
    const sides = {
      ours: await startOurSide(directory, children, 'agent'),
      framePerToken: await startOurSide(directory, children, 'frame-per-token'),
    };
    let met = true;
    for (const { title, stream, side, target } of COMPARISONS) {
      const ours = sides[side];
      const [bareResults, ourResults] = await alternate(bare, ours, stream);
      const unit = stream ? 'tokens/s' : 'requests/s';
      const ratio = median(ourResults.map((result) => result.perSecond)) / median(bareResults.map((result) => result.perSecond));
      print(title);
      printSide(bare.name, bareResults, unit);
      printSide(ours.name, ourResults, unit);
      const verdict = target === null ? '' : ` (target ${target}): ${ratio >= target ? 'met' : 'MISSED'}`;
      print(`  ratio ${ratio.toFixed(3)}${verdict}`);
      met &&= target === null || ratio >= target;
    }
    return met;
  } finally {
    for (const child of children.reverse()) await child.stop(3000);
    rmSync(directory, { recursive: true, force: true });
  }
}

async function alternate(bare: Side, ours: Side, stream: boolean): Promise<[Measured[], Measured[]]> {
  await measure(bare, stream, ROUND_MS / 4);
  await measure(ours, stream, ROUND_MS / 4);
  const results: [Measured[], Measured[]] = [[], []];
  for (let round = 0; round < ROUNDS; round++) {
    results[0].push(await measure(bare, stream, ROUND_MS));
    results[1].push(await measure(ours, stream, ROUND_MS));
  }
  return results;
}

async function measure(side: Side, stream: boolean, durationMs: number): Promise<Measured> {
  const body = JSON.stringify({ model: 'bench', messages: [{ role: 'user', content: 'What is the capital of France?' }], stream });
  const cpuBefore = cpuSeconds(side.pid);
  const result: LoadResult = await runLoad({
    url: `${side.url}/v1/chat/completions`,
    headers: side.headers,
    body: () => body,
    concurrency: stream ? STREAMS_AT_ONCE : PLAIN_AT_ONCE,
    durationMs,
    check: (status, text) => {
      if (status !== 200 || (stream ? !text.endsWith('data: [DONE]\n\n') : !text.endsWith('}'))) {
        throw new Error(`${side.name} answered ${status}: ${text.slice(0, 300)}`);
      }
    },
  });
  const units = stream ? result.answers * STREAM_TOKENS : result.answers;
  return {
    perSecond: units / result.seconds,
    firstByteP50: percentile(result.firstByteMs, 0.5),
    firstByteP99: percentile(result.firstByteMs, 0.99),
    cpuPerAnswer: ((cpuSeconds(side.pid) - cpuBefore) / result.answers) * 1e6,
  };
}

async function startBareSide(directory: string, children: Child[]): Promise<Side> {
  const { child, said: relay } = await startScript('bare-relay', [], directory, children);
  await startScript('bare-provider', [String(relay.port)], directory, children);
  return { name: 'bare relay', pid: child.pid, url: `http://127.0.0.1:${relay.port}`, headers: {} };
}

async function startOurSide(directory: string, children: Child[], framing: 'agent' | 'frame-per-token'): Promise<Side> {
  const coordinator = await startCoordinatorAlone(join(directory, framing), { LOG_LEVEL: 'warn' });
  children.push(coordinator.child);
  await startScript('instant-provider', [coordinator.baseUrl.replace('http', 'ws'), framing], directory, children);
  return {
    name: 'coordinator',
    pid: coordinator.child.pid,
    url: coordinator.baseUrl,
    headers: { authorization: `Bearer ${coordinator.apiKey}` },
  };
}

interface Started {
  readonly child: Child;
  /** The first thing it said. */
  readonly said: Record<string, unknown>;
}

/** Starts a process of this bench and waits until it speaks. */
async function startScript(name: string, args: string[], directory: string, children: Child[]): Promise<Started> {
  const script = fileURLToPath(new URL(`./${name}.ts`, import.meta.url));
  const child = await spawnChild({
    name,
    argv: ['--import', 'tsx', script, ...args],
    env: process.env,
    logFile: join(directory, `${name}.log`),
  });
  children.push(child);
  const said = await Promise.race([
    child.message,
    child.exited.then(() => {
      throw new Error(`${name} did not start: ${child.lastWords()}`);
    }),
  ]);
  return { child, said };
}

function printSide(name: string, results: readonly Measured[], unit: string): void {
  const rates = results.map((result) => result.perSecond);
  const last = results.at(-1);
  print(
    `  ${name.padEnd(12)} ${Math.round(median(rates)).toLocaleString('en')} ${unit} (${Math.round(Math.min(...rates))} to ${Math.round(Math.max(...rates))}), ` +
      `first byte p50 ${last?.firstByteP50.toFixed(1)} ms, p99 ${last?.firstByteP99.toFixed(1)} ms, ` +
      `${Math.round(median(results.map((result) => result.cpuPerAnswer)))} µs of CPU per answer`,
  );
}

function print(text: string): void {
  console.log(text);
}
