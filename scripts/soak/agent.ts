/**
 * Soak test: agent and coordinator are frozen, suspended and killed at random, under verified traffic.
 *
 * Passes if the agent recovers in time, sends no wrong response, and keeps its memory bounded.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { requestStatus } from '../../apps/provider/src/control/control-client.js';
import { OwnSupervisor } from '../../apps/provider/src/service/own-supervisor.js';
import { startFaultNetwork } from '../../test/support/faults/network.js';
import { residentBytes } from '../../test/support/memory.js';
import { descendantsOf, isAlive } from '../../test/support/processes.js';
import { seededRandom } from '../../test/support/seeded-random.js';
import { type Access, ask, BadAnswer } from '../../test/support/verified-client.js';
import { startProgress } from '../progress.js';

const MAIN = fileURLToPath(new URL('../../apps/provider/dist/main.js', import.meta.url));
const MODEL = 'pico-demo';
/** Maximum time from the end of a fault to a verified answer. The agent's watchdog takes a minute, then a model must load. */
const RECOVERY_MS = 90_000;
const MIB = 2 ** 20;
/** Minimum interval between engine kills. The agent disables a model whose engine died three times in ten minutes. */
const MIN_ENGINE_KILL_INTERVAL_MS = 5.5 * 60_000;
/** Minimum length of a run, as a multiple of its longest fault. */
const MIN_RUN_PER_FAULT = 10;
/** Maximum memory growth of a process in the second half of a run, in which the agent is not killed. */
const MAX_GROWTH_BYTES = 48 * MIB;

interface Fault {
  readonly name: string;
  /** Whether the agent's process dies, which excludes the fault while memory is measured. */
  readonly kills: boolean;
  readonly strike: () => Promise<void>;
  /** Minimum interval between faults of this kind, in milliseconds. */
  readonly everyMs?: number;
  /** Duration of the fault, in milliseconds; short runs exclude long faults. */
  readonly maxDurationMs?: number;
}

interface Recovery {
  readonly fault: string;
  /** Null: no recovery in time. */
  readonly ms: number | null;
}

export async function agent(minutes: number, seed: number): Promise<boolean> {
  const random = seededRandom(seed);
  const between = (min: number, max: number): number => min + random() * (max - min);
  const faults = await startFaultNetwork({ env: { LOG_LEVEL: 'warn' } });
  const dataDir = mkdtempSync(join(tmpdir(), 'soak-agent-'));
  const config = `coordinator = "${faults.network.baseUrl}"\nsimulated_enclave = true\n[models]\nslots = 2\n`;
  writeFileSync(join(dataDir, 'config.toml'), config, { mode: 0o600 });
  const supervisor = new OwnSupervisor(dataDir, 25);
  const owner = (command: string) =>
    promisify(execFile)(process.execPath, [MAIN, command, '--data-dir', dataDir, '--manager', 'supervisor']);
  const agentPid = async (): Promise<number> => (await supervisor.supervisorState())?.child?.pid ?? 0;
  const childOf = async (part: string): Promise<number> => {
    const pid = await agentPid();
    // Without an agent, process 0 would match, the ancestor of every process.
    return pid === 0 ? 0 : (descendantsOf(pid).find(({ command }) => command.includes(part))?.pid ?? 0);
  };
  const kill = (pid: number): void => {
    if (pid > 0) process.kill(pid, 'SIGKILL');
  };
  const freeze = async (pids: readonly number[], ms: number): Promise<void> => {
    const there = pids.filter((pid) => pid > 0);
    for (const pid of there) process.kill(pid, 'SIGSTOP');
    await delay(ms);
    for (const pid of there) if (isAlive(pid)) process.kill(pid, 'SIGCONT');
  };
  const coordinator = (): number => faults.coordinatorPid();
  const KILLED: readonly Fault[] = [
    { name: 'agent killed', kills: true, strike: async () => kill(await agentPid()) },
    {
      name: 'supervisor killed, started by its owner',
      kills: true,
      strike: async () => {
        kill((await supervisor.supervisorState())?.pid ?? 0);
        await owner('start');
      },
    },
    { name: 'restart', kills: true, strike: async () => void (await owner('restart')) },
  ];
  const ANY: readonly Fault[] = [
    {
      name: 'engine killed',
      kills: false,
      everyMs: MIN_ENGINE_KILL_INTERVAL_MS,
      strike: async () => kill(await childOf('engine/process')),
    },
    { name: 'enclave helper killed', kills: false, strike: async () => kill(await childOf('simulated/main')) },
    {
      name: 'agent asleep, briefly',
      kills: false,
      maxDurationMs: 5_000,
      strike: async () => freeze([await agentPid()], between(500, 5_000)),
    },
    {
      name: 'agent asleep, until it is given up',
      kills: false,
      maxDurationMs: 45_000,
      strike: async () => freeze([await agentPid()], between(20_000, 45_000)),
    },
    { name: 'coordinator killed', kills: false, strike: async () => kill(coordinator()) },
    { name: 'coordinator frozen', kills: false, maxDurationMs: 40_000, strike: async () => freeze([coordinator()], between(500, 40_000)) },
    {
      name: 'both frozen',
      kills: false,
      maxDurationMs: 20_000,
      strike: async () => freeze([await agentPid(), coordinator()], between(1_000, 20_000)),
    },
  ];

  const OTHERS = ANY.filter(({ maxDurationMs = 0 }) => maxDurationMs <= (minutes * 60_000) / MIN_RUN_PER_FAULT);

  const problems: string[] = [];
  const recoveries: Recovery[] = [];
  const customer = await faults.customers.customer();
  const client = startClient(customer, problems);
  const began = performance.now();
  const until = began + minutes * 60_000;
  const half = began + minutes * 30_000;
  let before: Sizes | null = null;
  const progress = startProgress({
    until,
    figures: () => `${recoveries.length} faults, ${client.counts.verified} answers verified, ${problems.length} problems`,
  });
  try {
    await owner('start');
    if (!(await client.verifiedWithin(RECOVERY_MS))) problems.push('the agent did not serve in the beginning');
    // Every fault once, then faults at random.
    let due: Fault[] = [];
    const struck = new Map<string, number>();
    while (performance.now() < until) {
      const isSecondHalf = performance.now() > half;
      if (isSecondHalf && before === null) before = await sizes(await agentPid(), coordinator());
      if (due.length === 0) due = shuffle([...OTHERS, ...(isSecondHalf ? [] : KILLED)], random);
      const fault = due.pop();
      if (fault === undefined || (fault.kills && isSecondHalf)) continue;
      const now = performance.now();
      if (fault.everyMs !== undefined && now - (struck.get(fault.name) ?? Number.NEGATIVE_INFINITY) < fault.everyMs) continue;
      struck.set(fault.name, now);
      await fault.strike();
      const at = performance.now();
      const isBack = await client.verifiedWithin(RECOVERY_MS);
      recoveries.push({ fault: fault.name, ms: isBack ? performance.now() - at : null });
      if (!isBack) problems.push(`not back within ${RECOVERY_MS / 1000} s after: ${fault.name}`);
      await delay(between(500, 4_000));
    }
    for (let answers = 0; answers < 10; answers++) {
      if (!(await client.verifiedWithin(RECOVERY_MS))) problems.push('the agent did not serve in the end');
    }
    const { jobs, connection } = await requestStatus(dataDir, 10_000);
    if (connection.state !== 'connected') problems.push(`the agent ends ${connection.state}`);
    console.log(`the agent's last process: ${jobs.completed} jobs done, ${jobs.failed} failed, ${jobs.cancelled} cancelled`);
    const after = await sizes(await agentPid(), coordinator());
    printMemory(before ?? after, after, problems);
  } catch (error) {
    problems.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
  }
  progress.stop();
  await client.stop();
  await owner('stop').catch((error: unknown) => problems.push(`stop: ${error}`));
  const left = descendantsOf(process.pid).filter(({ command }) => command.includes(dataDir));
  if (left.length > 0) problems.push(`left over: ${left.map(({ command }) => command).join('; ')}`);
  problems.push(...(await faults.customers.audit(customer, [], Number.POSITIVE_INFINITY)), ...(await faults.customers.ledgerProblems()));
  printRecoveries(recoveries);
  console.log(
    `answers: ${client.counts.verified} verified, ${client.counts.refused} refused, ${client.counts.broken} broken off (seed ${seed})`,
  );
  for (const problem of problems.slice(0, 20)) console.error(`PROBLEM: ${problem}`);
  await faults.dispose();
  rmSync(dataDir, { recursive: true, force: true });
  return problems.length === 0;
}

function startClient(access: Access, problems: string[]) {
  const stop = new AbortController();
  const counts = { verified: 0, refused: 0, broken: 0 };
  let waiting: (() => void)[] = [];
  const running = (async () => {
    for (let number = 0; !stop.signal.aborted; number++) {
      try {
        // A frozen coordinator does not answer; the client retries.
        const signal = AbortSignal.any([stop.signal, AbortSignal.timeout(15_000)]);
        const { kind } = await ask(access, { model: MODEL, stream: number % 2 === 0, prompt: 'Hello!', maxTokens: 8, signal });
        counts[kind]++;
        if (kind === 'verified') for (const resolve of waiting.splice(0)) resolve();
      } catch (error) {
        if (error instanceof BadAnswer) problems.push(error.message);
        counts.broken++;
      }
      await delay(100, undefined, { signal: stop.signal }).catch(() => {});
    }
  })();
  return {
    counts,
    /** Whether a new request is verified in time. */
    async verifiedWithin(ms: number): Promise<boolean> {
      const timer = new AbortController();
      const late = delay(ms, false, { signal: timer.signal }).catch(() => false);
      const next = (): Promise<void> => new Promise((resolve) => waiting.push(resolve));
      // The first response may belong to an earlier request.
      const verified = next()
        .then(next)
        .then(() => true);
      const result = await Promise.race([verified, late]);
      timer.abort();
      waiting = [];
      return result;
    },
    async stop(): Promise<void> {
      stop.abort();
      await running;
    },
  };
}

interface Sizes {
  readonly agent: number;
  readonly coordinator: number;
  readonly agentPid: number;
}

async function sizes(agentPid: number, coordinatorPid: number): Promise<Sizes> {
  return { agent: await residentBytes(agentPid), coordinator: await residentBytes(coordinatorPid), agentPid };
}

function printMemory(before: Sizes, after: Sizes, problems: string[]): void {
  const mib = (bytes: number): string => `${(bytes / MIB).toFixed(0)} MiB`;
  console.log(`memory of the agent over the second half: ${mib(before.agent)} -> ${mib(after.agent)}`);
  console.log(`memory of the coordinator (killed now and then): ${mib(before.coordinator)} -> ${mib(after.coordinator)}`);
  if (before.agentPid !== after.agentPid) problems.push('the agent was started again in the half in which nobody killed it');
  else if (after.agent - before.agent > MAX_GROWTH_BYTES) problems.push(`the agent has grown by ${mib(after.agent - before.agent)}`);
}

function printRecoveries(recoveries: readonly Recovery[]): void {
  const names = [...new Set(recoveries.map(({ fault }) => fault))].sort();
  console.log(`\n${'fault'.padEnd(42)}${'times'.padStart(6)}${'median'.padStart(10)}${'longest'.padStart(10)}`);
  for (const name of names) {
    const times = recoveries.filter(({ fault }) => fault === name).map(({ ms }) => ms ?? Number.POSITIVE_INFINITY);
    times.sort((a, b) => a - b);
    const seconds = (ms: number | undefined): string => `${((ms ?? 0) / 1000).toFixed(1)} s`;
    console.log(
      `${name.padEnd(42)}${String(times.length).padStart(6)}${seconds(times[times.length >> 1]).padStart(10)}${seconds(times.at(-1)).padStart(10)}`,
    );
  }
  console.log('');
}

function shuffle<Value>(values: Value[], random: () => number): Value[] {
  for (let index = values.length - 1; index > 0; index--) {
    const other = Math.floor(random() * (index + 1));
    [values[index], values[other]] = [values[other] as Value, values[index] as Value];
  }
  return values;
}
