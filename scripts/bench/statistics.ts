/** Figures for benches: medians and percentiles of measurements, and processor time and memory of processes (Linux only). */
import { existsSync, readdirSync, readFileSync } from 'node:fs';

/** Clock ticks per second in /proc (USER_HZ, always 100 on Linux). */
const TICKS_PER_SECOND = 100;

/** CPU time of a process, all threads, in seconds; NaN without /proc. */
export function cpuSeconds(pid: number): number {
  const path = `/proc/${pid}/stat`;
  if (!existsSync(path)) return Number.NaN;
  const fields = readFileSync(path, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** CPU time of a process and its children, exited children included, in seconds; NaN without /proc. */
export function familyCpuSeconds(pid: number): number {
  if (!existsSync('/proc/self/stat')) return Number.NaN;
  let ticks = 0;
  for (const name of readdirSync('/proc')) {
    const fields = /^\d+$/.test(name) ? statFields(name) : [];
    // Indexes: 1 is the parent; 11 and 12 are user and system time, 13 and 14 the same of exited children.
    if (name === String(pid)) ticks += Number(fields[13]) + Number(fields[14]);
    if (name === String(pid) || fields[1] === String(pid)) ticks += Number(fields[11]) + Number(fields[12]);
  }
  return ticks / TICKS_PER_SECOND;
}

/** Fields after the command name; empty for a process that has just exited. */
function statFields(pid: string): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  } catch {
    return [];
  }
}

/** Median; the mean of the two middle values for an even count. Throws RangeError on an empty list. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle];
  if (upper === undefined) throw new RangeError('no median of nothing');
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] as number)) / 2;
}

/** Nearest-rank percentile of an ascending list; `share` from 0 to 1. Throws RangeError on an empty list. */
export function percentile(ascending: readonly number[], share: number): number {
  const value = ascending[Math.min(ascending.length - 1, Math.max(0, Math.ceil(share * ascending.length) - 1))];
  if (value === undefined) throw new RangeError('no percentile of nothing');
  return value;
}

/** Resident memory of a process in bytes; NaN without /proc. */
export function residentBytes(pid: number): number {
  const path = `/proc/${pid}/status`;
  if (!existsSync(path)) return Number.NaN;
  const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(path, 'utf8')) ?? [];
  return Number(kib) * 1024;
}
