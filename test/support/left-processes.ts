/** Detects orphaned or stopped processes that once were descendants of this process. Linux only (/proc). */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SCAN_INTERVAL_MS = 1000;

export interface LeftProcess {
  readonly pid: number;
  /** Start time in clock ticks since boot, because process ids are reused. */
  readonly startedAt: number;
  readonly state: string;
  readonly command: string;
}

interface Row {
  readonly startedAt: number;
  readonly state: string;
}

/** One map per process, which runs many files. Key: pid; value: start time. */
const KEY = Symbol.for('test/support/left-processes');
const shared = globalThis as { [KEY]?: Map<number, number> };
const seen = shared[KEY] ?? startScanning();

function startScanning(): Map<number, number> {
  const started = new Map<number, number>();
  shared[KEY] = started;
  // An orphan has another parent, so descendants are recorded while their parents live.
  if (existsSync('/proc/self/stat')) setInterval(() => noteDescendants(started), SCAN_INTERVAL_MS).unref();
  return started;
}

/** Orphaned or suspended processes of Node.js or of this repository. Ignores browsers, whose processes may outlive parents. */
export function leftProcesses(): LeftProcess[] {
  if (!existsSync('/proc/self/stat')) return [];
  const descendants = noteDescendants(seen);
  const left: LeftProcess[] = [];
  for (const [pid, startedAt] of seen) {
    const row = rowOf(pid);
    if (row?.startedAt !== startedAt) {
      seen.delete(pid);
      continue;
    }
    const { state } = row;
    if (state === 'Z' || state === 'X') continue;
    if (descendants.has(pid) && state !== 'T') continue;
    const command = commandOf(pid);
    if (command.includes(ROOT) || /(^|\/)node( |$)/.test(command)) left.push({ pid, startedAt, state, command });
  }
  return left;
}

/** Reads this process's own tree only: reading all of /proc every second takes 1 % of a core for each test process. */
function noteDescendants(started: Map<number, number>): ReadonlySet<number> {
  const found = new Set<number>();
  const visit = (pid: number): void => {
    for (const child of childrenOf(pid)) {
      const row = rowOf(child);
      if (row === null) continue;
      found.add(child);
      started.set(child, row.startedAt);
      visit(child);
    }
  };
  visit(process.pid);
  return found;
}

/** Children of all threads of a process. proc_tid_children(5). */
function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
    );
  } catch {
    // The process has ended.
    return [];
  }
}

/** Null if the process has ended. proc_pid_stat(5): the name in parentheses may contain spaces. */
function rowOf(pid: number): Row | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { state: fields[0] as string, startedAt: Number(fields[19]) };
  } catch {
    return null;
  }
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
  } catch {
    return '';
  }
}
