/** Lists running processes with `ps`, on Linux and macOS. */
import { execFileSync } from 'node:child_process';

/** Time limit of `ps`, because the synchronous call blocks the event loop. */
const PS_MS = 30_000;

export interface ProcessRow {
  readonly pid: number;
  readonly parent: number;
  readonly command: string;
}

export function processTable(): ProcessRow[] {
  const text = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,args='], {
    encoding: 'utf8',
    maxBuffer: 16 * 1024 * 1024,
    timeout: PS_MS,
    killSignal: 'SIGKILL',
  });
  return text
    .split('\n')
    .map((line) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line))
    .filter((match) => match !== null)
    .map((match) => ({ pid: Number(match[1]), parent: Number(match[2]), command: match[3] as string }));
}

/** Direct and indirect children of a process. */
export function descendantsOf(pid: number, table: readonly ProcessRow[] = processTable()): ProcessRow[] {
  return table.filter((row) => row.parent === pid).flatMap((child) => [child, ...descendantsOf(child.pid, table)]);
}

/** Waits until all processes have exited, at most `deadlineMs`. Resolves to the survivors. */
export async function waitUntilGone(pids: readonly number[], deadlineMs = 60_000): Promise<number[]> {
  const end = Date.now() + deadlineMs;
  for (;;) {
    const left = living(pids);
    if (left.length === 0 || Date.now() > end) return left;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Whether a process exists, and is not a zombie. */
export function isAlive(pid: number): boolean {
  return living([pid]).length > 0;
}

/** Processes that exist and are not zombies. `ps` runs only if some exist, because a call takes 20 ms of processor time. */
function living(pids: readonly number[]): number[] {
  const existing = pids.filter(exists);
  if (existing.length === 0) return [];
  const table = processTable();
  return existing.filter((pid) => table.some((row) => row.pid === pid && !/<defunct>/.test(row.command)));
}

function exists(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // EPERM: the process exists, and belongs to another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
