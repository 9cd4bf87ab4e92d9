/** `npm run soak -- cluster`: random faults of a cluster under load. Answers must verify, or fail as docs/cluster.md permits. */
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'kysely';
import { filesHolding } from '../../../test/support/files-holding.js';
import { descendantsOf, processTable } from '../../../test/support/processes.js';
import { seededRandom } from '../../../test/support/seeded-random.js';
import { startProgress } from '../../progress.js';
import { type Fault, FaultDraw } from './faults.js';
import { Load } from './load.js';
import { MemoryWatch } from './memory-watch.js';
import { spyOnNats } from './nats-spy.js';
import { Presence } from './presence.js';
import { untilRecovered } from './recovery.js';
import { type InjectedFault, printInjectedFaults, printOutcomes, seconds } from './report.js';
import { checkSettlements } from './settlements.js';
import { LIGHT_SLOTS, type SoakCluster, startSoakCluster } from './soak-cluster.js';

/** Maximum time after a fault until processes are restarted and {@link untilRecovered} finds no problem. */
const RECOVERY_MS = 60_000;
const MIN_REST_MS = 1_000;
const MAX_REST_MS = 3_000;
const MAX_PRINTED = 25;

export async function cluster(minutes: number, seed: number): Promise<boolean> {
  const cancelled = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => cancelled.abort(new Error('interrupted')));
  const problems: string[] = [];
  const { signal } = cancelled;
  const earlierPids = new Set(descendantsOf(process.pid).map(({ pid }) => pid));
  const failures: string[] = [];
  const soak = await startSoakCluster({
    signal,
    onFailure: (reason) => {
      failures.push(reason);
      cancelled.abort(new Error(reason));
    },
  }).catch((error: unknown) => {
    const cause: unknown = signal.aborted ? signal.reason : error;
    console.error(`PROBLEM: ${cause instanceof Error ? cause.message : cause}`);
    return null;
  });
  if (soak === null) return false;
  try {
    await run({ soak, minutes, seed, problems, signal });
  } catch (error) {
    const isCancelled = signal.aborted && (error === signal.reason || (error instanceof Error && error.cause === signal.reason));
    if (!isCancelled) problems.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
  }
  await soak.stop();
  // Read after the stop, because the cluster reports a failure only once its programs have ended.
  if (failures.length > 0) problems.unshift(...failures);
  else if (signal.aborted) problems.unshift((signal.reason as Error).message);
  const table = processTable();
  const descendantPids = new Set(descendantsOf(process.pid, table).map(({ pid }) => pid));
  const left = table.filter(({ pid, command }) => {
    // tsx starts esbuild at the first import that is not cached.
    const isTool = command.startsWith('ps ') || /esbuild.* --service=/.test(command);
    const isOurs = descendantPids.has(pid) && !earlierPids.has(pid) && !isTool;
    return isOurs || command.includes(soak.dataDir);
  });
  if (left.length > 0) problems.push(`left over: ${left.map(({ command }) => command).join('; ')}`);
  for (const problem of problems.slice(0, MAX_PRINTED)) console.error(`PROBLEM: ${problem}`);
  if (problems.length > MAX_PRINTED) console.error(`PROBLEM: and ${problems.length - MAX_PRINTED} more`);
  if (problems.length === 0) soak.removeFiles();
  else console.error(`The files stay in ${soak.dataDir}.`);
  return problems.length === 0;
}

interface Run {
  readonly soak: SoakCluster;
  readonly minutes: number;
  readonly seed: number;
  readonly problems: string[];
  readonly signal: AbortSignal;
}

async function run({ soak, minutes, seed, problems, signal }: Run): Promise<void> {
  const random = seededRandom(seed);
  const canary = `canary-${randomBytes(12).toString('hex')}`;
  const injectedFaults: InjectedFault[] = [];
  const draw = new FaultDraw(soak, random);
  const presence = new Presence(soak);
  const memory = new MemoryWatch(soak);
  const until = performance.now() + minutes * 60_000;
  // The load has its own random source, so that the faults depend on the seed alone.
  const load = new Load(soak, canary, seededRandom(seed + 1), signal);
  const progress = startProgress({
    until,
    figures: () => `${injectedFaults.length} faults, ${load.paid.length} answers verified, ${load.failures.length} errors`,
  });
  try {
    problems.push(...(await spyOnNats(soak, canary, signal)));
    do {
      const { injected, problems: found } = await injectFault(soak, draw.next(), presence, signal);
      injectedFaults.push(injected);
      problems.push(...found);
      await pause(MIN_REST_MS + random() * (MAX_REST_MS - MIN_REST_MS), signal);
    } while (performance.now() < until && !signal.aborted);
  } finally {
    progress.stop();
    await load.stop();
    presence.stop();
    memory.stop();
  }
  printInjectedFaults(injectedFaults);
  console.log(`longest delay of a timer in this process: ${seconds(presence.maxLateMs)} (a busy machine breaks bounds by itself)`);
  problems.push(...printOutcomes(load, injectedFaults), ...memory.report());
  const overloaded = soak.lightAgents.filter(({ maxJobs }) => maxJobs > LIGHT_SLOTS);
  if (overloaded.length > 0) problems.push(`${overloaded.length} agents had more than ${LIGHT_SLOTS} jobs at once`);
  if (!signal.aborted) problems.push(...(await checkSettlements(soak, load, injectedFaults)), ...(await findCanary(soak, canary)));
}

async function injectFault(soak: SoakCluster, fault: Fault, presence: Presence, signal: AbortSignal) {
  const problems: string[] = [];
  const from = performance.now();
  const injected: InjectedFault = { fault, from, to: Number.POSITIVE_INFINITY, recoveryMs: 0, awayMs: 0 };
  const victim = fault.victim === null ? '' : `, coordinator-${fault.victim.index + 1}`;
  console.log(`${seconds(from).padStart(8)}  ${fault.name}${victim}`);
  presence.begin(fault.freezes ? fault.victim : null);
  await fault.inject(signal);
  presence.thaw();
  const over = performance.now();
  const difference = await untilRecovered(soak, over + RECOVERY_MS, signal);
  injected.to = performance.now();
  injected.recoveryMs = injected.to - over;
  injected.awayMs = presence.maxMs;
  if (difference !== null && !signal.aborted)
    problems.push(`not recovered within ${RECOVERY_MS / 1000} s after ${fault.name}: ${difference}`);
  if (injected.awayMs > fault.maxAwayMs) problems.push(`a provider was away for ${seconds(injected.awayMs)} during ${fault.name}`);
  return { injected, problems };
}

/** Resolves early on abort. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => {});
}

/** Returns a problem for each log file or table with `canary`, a text in every prompt. Prompts must not be stored. */
async function findCanary({ network, database }: SoakCluster, canary: string): Promise<string[]> {
  const logs = filesHolding(network.logDir, canary).map((file) => `prompts in the log file ${file}`);
  const tables = await sql<{ name: string }>`select tablename as name from pg_tables where schemaname = 'public'`.execute(database);
  if (tables.rows.length === 0) throw new Error('the database has no tables');
  const found: string[] = [];
  for (const { name } of tables.rows) {
    const { rows } = await sql`select 1 from ${sql.table(name)} as r where r::text like ${`%${canary}%`} limit 1`.execute(database);
    if (rows.length > 0) found.push(`prompts in the table ${name}`);
  }
  return [...logs, ...found];
}
