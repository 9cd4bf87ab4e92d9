/** `JobProcesses`: starts and commands the processes of the ledger benches. Also measures PostgreSQL's processor time. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { ProviderId } from '@inference/protocol';
import { sql } from 'kysely';
import type { DatabaseTarget } from '../../../apps/coordinator/dist/database/connection/open-database.js';
import type { Database } from '../../../apps/coordinator/dist/database/tables.js';
import { END, type JobOrder, type JobProcessOptions } from './job-order.js';
import type { JobsResult } from './jobs.js';

const PROGRAM = fileURLToPath(new URL('job-process.ts', import.meta.url));
const PROVIDERS = 20;
/** Ticks of `/proc/<pid>/stat` are hundredths of a second. */
const TICK_US = 10_000;

export class JobProcesses {
  readonly #children: readonly ChildProcess[];

  private constructor(children: readonly ChildProcess[]) {
    this.#children = children;
  }

  static async start(count: number, target: DatabaseTarget, accounts: readonly string[]): Promise<JobProcesses> {
    const providers = Array.from({ length: PROVIDERS }, (_, index) => index.toString(16).padStart(32, '0') as ProviderId);
    const options: JobProcessOptions = { target, accounts, providers };
    const children = Array.from({ length: count }, () => fork(PROGRAM, [JSON.stringify(options)]));
    const processes = new JobProcesses(children);
    try {
      await Promise.all(children.map(answer));
    } catch (error) {
      processes.kill();
      throw error;
    }
    return processes;
  }

  /** Runs the jobs in every process. Resolves to one result per process. */
  run(order: JobOrder): Promise<JobsResult[]> {
    return Promise.all(
      this.#children.map((child) => {
        const result = answer(child);
        child.send(order);
        return result as Promise<JobsResult>;
      }),
    );
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

async function answer(child: ChildProcess): Promise<unknown> {
  const answered = new AbortController();
  const { signal } = answered;
  const closed = once(child, 'close', { signal }).then(() => {
    throw new Error('a process of the ledger bench ended early');
  });
  closed.catch(() => undefined);
  try {
    const [message] = (await Promise.race([once(child, 'message', { signal }), closed])) as [unknown];
    return message;
  } finally {
    answered.abort();
  }
}

/** Processor time of each connection to this database, by process id; null if the server is on another machine. */
export async function serverTimes(database: Database): Promise<ReadonlyMap<number, number> | null> {
  const { rows } = await sql<{ pid: number }>`select pid from pg_stat_activity where datname = current_database()`.execute(database);
  const times = new Map<number, number>();
  for (const { pid } of rows) {
    const file = `/proc/${pid}/stat`;
    if (!existsSync(file)) return null;
    // Indexes after the command name in parentheses: fields 14 and 15 (user and system time) are 11 and 12.
    const fields = readFileSync(file, 'utf8').split(') ')[1]?.split(' ') ?? [];
    times.set(pid, (Number(fields[11]) + Number(fields[12])) * TICK_US);
  }
  return times;
}

/** Processor time between two samples, in microseconds; null if a connection closed in between, because its time is lost. */
export function serverTimeBetween(before: ReadonlyMap<number, number> | null, after: ReadonlyMap<number, number> | null): number | null {
  if (before === null || after === null) return null;
  let sum = 0;
  for (const pid of before.keys()) if (!after.has(pid)) return null;
  for (const [pid, time] of after) sum += time - (before.get(pid) ?? 0);
  return sum;
}
