/**
 * `npm run soak -- agent [minutes] [seed]`: kills and freezes agent and coordinator at random, while a client verifies responses.
 *
 * Passes if the agent recovers from every fault in time, sends no wrong response, leaves no process and grows little in memory, and the
 * ledger balances.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { requestStatus } from '../../apps/provider/src/control/control-client.js';
import { startFaultNetwork } from '../../test/support/faults/network.js';
import { residentBytes } from '../../test/support/memory.js';
import { seededRandom } from '../../test/support/seeded-random.js';
import { type Access, ask, BadAnswer } from '../../test/support/verified-client.js';
import { startProgress } from '../progress.js';
import { deadlyFaults, type Fault, FaultSchedule, survivableFaults } from './agent-faults.js';
import { AgentProcesses } from './agent-processes.js';

/** Maximum time from the start, or the end of a fault, to a verified response. The agent's watchdog may take a minute of it. */
const RECOVERY_MS = 90_000;
const MIB = 2 ** 20;
/** Minimum length of a run, as a multiple of its longest fault. */
const MIN_RUN_PER_FAULT = 10;
/** Maximum memory growth of the daemon in the second half of a run. */
const MAX_GROWTH_BYTES = 48 * MIB;
const FINAL_RESPONSES = 10;

interface Recovery {
  readonly fault: string;
  /** Time from the end of the fault to a verified response. Null if it took too long. */
  readonly ms: number | null;
}

type Network = Awaited<ReturnType<typeof startFaultNetwork>>;
type Customer = Awaited<ReturnType<Network['customers']['customer']>>;

/** Resolves to whether there were no problems. */
export async function agent(minutes: number, seed: number): Promise<boolean> {
  const network = await startFaultNetwork({ env: { LOG_LEVEL: 'warn' } });
  const run = new AgentSoak(network, await network.customers.customer(), minutes, seed);
  try {
    await run.start();
    await run.injectFaults();
    await run.checkEnd();
  } catch (error) {
    run.problems.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
  }
  await run.stop();
  await run.checkLedger();
  run.print();
  await run.dispose();
  return run.problems.length === 0;
}

class AgentSoak {
  readonly problems: string[] = [];
  readonly #network: Network;
  readonly #customer: Customer;
  readonly #seed: number;
  readonly #random: () => number;
  readonly #processes: AgentProcesses;
  readonly #schedule: FaultSchedule;
  readonly #traffic: ReturnType<typeof startVerifiedTraffic>;
  readonly #recoveries: Recovery[] = [];
  readonly #progress: ReturnType<typeof startProgress>;
  /** Times by `performance.now()`. */
  readonly #endsAt: number;
  readonly #halfAt: number;
  #memoryAtHalf: MemorySizes | null = null;

  constructor(network: Network, customer: Customer, minutes: number, seed: number) {
    this.#network = network;
    this.#customer = customer;
    this.#seed = seed;
    this.#random = seededRandom(seed);
    this.#processes = new AgentProcesses(network.network.baseUrl);
    const deps = { processes: this.#processes, coordinatorPid: () => network.coordinatorPid(), random: this.#random };
    const maxDurationOfFault = (minutes * 60_000) / MIN_RUN_PER_FAULT;
    const survivable = survivableFaults(deps).filter(({ maxDurationMs = 0 }) => maxDurationMs <= maxDurationOfFault);
    this.#schedule = new FaultSchedule(deadlyFaults(deps), survivable, this.#random);
    this.#traffic = startVerifiedTraffic(customer, this.problems);
    const startedAt = performance.now();
    this.#endsAt = startedAt + minutes * 60_000;
    this.#halfAt = startedAt + minutes * 30_000;
    this.#progress = startProgress({
      until: this.#endsAt,
      figures: () =>
        `${this.#recoveries.length} faults, ${this.#traffic.counts.verified} answers verified, ${this.problems.length} problems`,
    });
  }

  async start(): Promise<void> {
    await this.#processes.runCommand('start');
    if (!(await this.#traffic.verifiedWithin(RECOVERY_MS))) this.problems.push('the agent did not serve at the start');
  }

  /** Injects faults until the end of the run; the second half has no deadly faults. */
  async injectFaults(): Promise<void> {
    while (performance.now() < this.#endsAt) {
      const isSecondHalf = performance.now() > this.#halfAt;
      if (isSecondHalf) this.#memoryAtHalf ??= await this.#measureMemory();
      const fault = this.#schedule.draw(performance.now(), !isSecondHalf);
      if (fault === null) continue;
      await this.#injectFault(fault);
      await delay(500 + this.#random() * 3_500);
    }
  }

  async #injectFault(fault: Fault): Promise<void> {
    await fault.inject();
    const endedAt = performance.now();
    const isServing = await this.#traffic.verifiedWithin(RECOVERY_MS);
    this.#recoveries.push({ fault: fault.name, ms: isServing ? performance.now() - endedAt : null });
    if (!isServing) this.problems.push(`no verified response within ${RECOVERY_MS / 1000} s after: ${fault.name}`);
  }

  async checkEnd(): Promise<void> {
    for (let count = 0; count < FINAL_RESPONSES; count++) {
      if (!(await this.#traffic.verifiedWithin(RECOVERY_MS))) this.problems.push('the agent did not serve at the end');
    }
    const { jobs, connection } = await requestStatus(this.#processes.dataDir, 10_000);
    if (connection.state !== 'connected') this.problems.push(`the agent's connection at the end: ${connection.state}`);
    console.log(`the agent's last process: ${jobs.completed} jobs completed, ${jobs.failed} failed, ${jobs.cancelled} cancelled`);
    const after = await this.#measureMemory();
    checkMemory(this.#memoryAtHalf ?? after, after, this.problems);
  }

  async stop(): Promise<void> {
    this.#progress.stop();
    await this.#traffic.stop();
    await this.#processes.runCommand('stop').catch((error: unknown) => this.problems.push(`stop: ${error}`));
    const leftover = await this.#processes.leftoverCommands();
    if (leftover.length > 0) this.problems.push(`processes still running: ${leftover.join('; ')}`);
  }

  async checkLedger(): Promise<void> {
    const { customers } = this.#network;
    this.problems.push(...(await customers.audit(this.#customer, [], Number.POSITIVE_INFINITY)), ...(await customers.ledgerProblems()));
  }

  print(): void {
    printRecoveries(this.#recoveries);
    const { verified, refused, broken } = this.#traffic.counts;
    console.log(`answers: ${verified} verified, ${refused} refused, ${broken} interrupted (seed ${this.#seed})`);
    for (const problem of this.problems.slice(0, 20)) console.error(`PROBLEM: ${problem}`);
  }

  async dispose(): Promise<void> {
    await this.#network.dispose();
    this.#processes.removeFiles();
  }

  async #measureMemory(): Promise<MemorySizes> {
    const daemonPid = await this.#processes.daemonPid();
    return { daemon: await residentBytes(daemonPid), coordinator: await residentBytes(this.#network.coordinatorPid()), daemonPid };
  }
}

/** Resident memory in bytes. */
interface MemorySizes {
  readonly daemon: number;
  readonly coordinator: number;
  readonly daemonPid: number;
}

/** Prints memory, and adds a problem if the daemon grew too much or restarted. */
function checkMemory(before: MemorySizes, after: MemorySizes, problems: string[]): void {
  const mib = (bytes: number): string => `${(bytes / MIB).toFixed(0)} MiB`;
  console.log(`memory of the agent over the second half: ${mib(before.daemon)} -> ${mib(after.daemon)}`);
  console.log(`memory of the coordinator (killed now and then): ${mib(before.coordinator)} -> ${mib(after.coordinator)}`);
  if (before.daemonPid !== after.daemonPid) problems.push('the agent restarted in the second half, without a deadly fault');
  else if (after.daemon - before.daemon > MAX_GROWTH_BYTES) problems.push(`the agent grew by ${mib(after.daemon - before.daemon)}`);
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

/** Starts a client that sends one request after the other until `stop`. Wrong responses are added to `problems`. */
function startVerifiedTraffic(access: Access, problems: string[]) {
  const stop = new AbortController();
  const counts = { verified: 0, refused: 0, broken: 0 };
  let waiting: (() => void)[] = [];
  const running = (async () => {
    for (let number = 0; !stop.signal.aborted; number++) {
      try {
        // A frozen coordinator does not answer; the client retries.
        const signal = AbortSignal.any([stop.signal, AbortSignal.timeout(15_000)]);
        const { kind } = await ask(access, { model: 'pico-demo', stream: number % 2 === 0, prompt: 'Hello!', maxTokens: 8, signal });
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
    /** Whether a request sent after the call is answered and verified within the time. */
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
