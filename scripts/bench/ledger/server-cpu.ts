/** `serverCpuDuring`: processor time that PostgreSQL spends on a database while some work runs. */
import { existsSync, readFileSync } from 'node:fs';
import { sql } from 'kysely';
import type { Database } from '../../../apps/coordinator/dist/database/tables.js';

/** Ticks of `/proc/<pid>/stat` are hundredths of a second. */
const TICK_US = 10_000;

/**
 * Runs `work`, and sums the microseconds of processor time of all connections to the database meanwhile.
 *
 * `cpuUs` is null if `/proc` does not show the server's processes, or if a connection closed and its time is lost.
 */
export async function serverCpuDuring<Result>(
  database: Database,
  work: () => Promise<Result>,
): Promise<{ readonly result: Result; readonly cpuUs: number | null }> {
  const before = await cpuUsByPid(database);
  const result = await work();
  return { result, cpuUs: difference(before, await cpuUsByPid(database)) };
}

async function cpuUsByPid(database: Database): Promise<ReadonlyMap<number, number> | null> {
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

function difference(before: ReadonlyMap<number, number> | null, after: ReadonlyMap<number, number> | null): number | null {
  if (before === null || after === null) return null;
  let sum = 0;
  for (const pid of before.keys()) if (!after.has(pid)) return null;
  for (const [pid, cpuUs] of after) sum += cpuUs - (before.get(pid) ?? 0);
  return sum;
}
