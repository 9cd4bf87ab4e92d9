/** `JobProcesses`: the processes that the ledger benches start to run jobs concurrently on one database. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { ProviderId } from '@inference/protocol';
import type { DatabaseTarget } from '../../../apps/coordinator/dist/database/connection/open-database.js';
import type { Database } from '../../../apps/coordinator/dist/database/tables.js';
import { END, type JobOrder, type JobProcessOptions } from './job-order.js';
import type { JobsResult } from './jobs.js';
import { serverCpuDuring } from './server-cpu.js';

const PROGRAM = fileURLToPath(new URL('job-process.ts', import.meta.url));
const PROVIDERS = 20;

/** One order, run by all processes: the sum of their rates and costs, and the means of their other figures. */
export interface ProcessesResult extends JobsResult {
  /** Processor time of PostgreSQL in microseconds per job; null if not measured. */
  readonly serverCpuUsPerJob: number | null;
}

export class JobProcesses {
  readonly #children: readonly ChildProcess[];

  private constructor(children: readonly ChildProcess[]) {
    this.#children = children;
  }

  /** Resolves when all processes have opened the database. */
  static async start(count: number, target: DatabaseTarget, accounts: readonly string[]): Promise<JobProcesses> {
    const providers = Array.from({ length: PROVIDERS }, (_, index) => index.toString(16).padStart(32, '0') as ProviderId);
    const options: JobProcessOptions = { target, accounts, providers };
    const children = Array.from({ length: count }, () => fork(PROGRAM, [JSON.stringify(options)]));
    const processes = new JobProcesses(children);
    try {
      await Promise.all(children.map(nextMessage));
    } catch (error) {
      processes.kill();
      throw error;
    }
    return processes;
  }

  /** Every process runs all jobs of the order. `postgres`: database whose server is measured; null: the server is not measured. */
  async run(order: JobOrder, postgres: Database | null): Promise<ProcessesResult> {
    const runAll = (): Promise<JobsResult[]> => Promise.all(this.#children.map((child) => runIn(child, order)));
    if (postgres === null) return { ...combined(await runAll()), serverCpuUsPerJob: null };
    const { result, cpuUs } = await serverCpuDuring(postgres, runAll);
    return { ...combined(result), serverCpuUsPerJob: cpuUs === null ? null : cpuUs / (this.#children.length * order.jobCount) };
  }

  async end(): Promise<void> {
    await Promise.all(
      this.#children.map(async (child) => {
        const closed = once(child, 'close');
        child.send(END);
        await closed;
      }),
    );
  }

  kill(): void {
    for (const child of this.#children) child.kill('SIGKILL');
  }
}

async function runIn(child: ChildProcess, order: JobOrder): Promise<JobsResult> {
  const result = nextMessage(child);
  child.send(order);
  return (await result) as JobsResult;
}

function combined(parts: readonly JobsResult[]): JobsResult {
  const sumOf = (figure: keyof JobsResult): number => parts.reduce((sum, part) => sum + part[figure], 0);
  return {
    jobsPerSecond: sumOf('jobsPerSecond'),
    cpuUsPerJob: sumOf('cpuUsPerJob') / parts.length,
    medianReserveMs: sumOf('medianReserveMs') / parts.length,
    cost: sumOf('cost'),
  };
}

/** Resolves to the next message of a process. Rejects if the process ends first. */
async function nextMessage(child: ChildProcess): Promise<unknown> {
  const received = new AbortController();
  const { signal } = received;
  const closed = once(child, 'close', { signal }).then(() => {
    throw new Error('a process of the ledger bench ended early');
  });
  closed.catch(() => undefined);
  try {
    const [message] = (await Promise.race([once(child, 'message', { signal }), closed])) as [unknown];
    return message;
  } finally {
    received.abort();
  }
}
