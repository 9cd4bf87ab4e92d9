/**
 * Compares the processor time per response of several builds of the coordinator: `npx tsx scripts/bench/relay/cost.ts [build…]`.
 *
 * A build is the path of its `dist/main.js`, after Node options or the path of another `node` if needed, separated by spaces. Default: this
 * build. The builds alternate, and results are relative to the first. `ROUNDS`, `ANSWERS` and `KINDS=plain,streams` change the measurement.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { median } from '../statistics.js';
import { PLAIN_ANSWER, requestBody, STREAM_END } from './answers.js';
import type { ClosedLoad } from './load-generator.js';
import { Processes, type Side } from './sides.js';

const AT_ONCE = 32;
const WARM_ANSWERS = 4000;
/** Time limit of a round, far above the duration on any machine. */
const MAX_ROUND_MS = 600_000;

const { ROUNDS = '8', ANSWERS = '1500', KINDS = 'plain,streams' } = process.env;
const rounds = Number(ROUNDS);
const answers = Number(ANSWERS);
const programs = process.argv.length > 2 ? process.argv.slice(2) : [undefined];

/** Processor time in microseconds per answer. */
interface Cost {
  readonly all: number;
  /** Part of the main thread. */
  readonly main: number;
}

const directory = mkdtempSync(join(tmpdir(), 'inference-bench-'));
const processes = new Processes(directory);
try {
  const generator = await processes.start('load-generator');
  const sides: Side[] = [];
  for (const [index, program] of programs.entries())
    sides.push(await processes.coordinator(`build-${index}`, 'agent', 1, program?.split(' ')));
  for (const kind of KINDS.split(',')) {
    const stream = kind === 'streams';
    const body = requestBody(stream, stream ? { tokens: 1, everyMs: 1 } : undefined);
    const run = async (side: Side, max: number): Promise<Cost> => {
      const work = { kind: 'closed', body, atOnce: AT_ONCE, durationMs: MAX_ROUND_MS, ending: stream ? STREAM_END : PLAIN_ANSWER } as const;
      const load: ClosedLoad = { ...work, target: side.target, answers: max };
      const before = threadSeconds(side.pid);
      const { answers: made } = (await generator.child.ask(load)) as { answers: number };
      const after = threadSeconds(side.pid);
      return { all: ((after.all - before.all) / made) * 1e6, main: ((after.main - before.main) / made) * 1e6 };
    };
    for (const side of sides) await run(side, WARM_ANSWERS);
    const costs = sides.map((): Cost[] => []);
    for (let round = 0; round < rounds; round++) for (const [index, side] of sides.entries()) costs[index]?.push(await run(side, answers));
    report(kind, costs);
  }
} finally {
  await processes.stop();
  rmSync(directory, { recursive: true, force: true });
}
process.exit();

function report(kind: string, costs: readonly (readonly Cost[])[]): void {
  const [first] = costs;
  console.log(`${kind}, ${AT_ONCE} at once, ${rounds} rounds of ${answers}; microseconds of processor time for each`);
  for (const [index, list] of costs.entries()) {
    const of = (name: keyof Cost): string => {
      const values = list.map((cost) => cost[name]);
      return `${Math.round(median(values))} (least ${Math.round(Math.min(...values))})`;
    };
    const ratios = (name: keyof Cost): string =>
      median(list.map((cost, round) => cost[name] / (first?.[round]?.[name] ?? Number.NaN))).toFixed(3);
    const against = index === 0 ? '' : `; of the first build's ${ratios('all')}, main thread ${ratios('main')}`;
    console.log(`  ${programs[index] ?? 'this build'}: ${of('all')}, main thread ${of('main')}${against}`);
  }
}

/** CPU seconds of the process and of its main thread so far. Linux only. */
function threadSeconds(pid: number): { readonly all: number; readonly main: number } {
  let all = 0;
  let main = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const ran = Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]) / 1e9;
    all += ran;
    if (Number(thread) === pid) main = ran;
  }
  return { all, main };
}
