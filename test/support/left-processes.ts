/** Detects orphaned or stopped processes that once were descendants of this process. Linux only (/proc). */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const LOOK_MS = 1000;

export interface LeftProcess {
  readonly pid: number;
  /** Start time in clock ticks since boot, because process ids are reused. */
  readonly startedAt: number;
  readonly state: string;
  readonly command: string;
}

interface Row {
  readonly pid: number;
  readonly parent: number;
  readonly startedAt: number;
  readonly state: string;
}

/** One map per process, which runs many files. Key: pid; value: start time. */
const KEY = Symbol.for('test/support/left-processes');
const kept = globalThis as { [KEY]?: Map<number, number> };
const seen = kept[KEY] ?? startLooking();

function startLooking(): Map<number, number> {
  const started = new Map<number, number>();
  kept[KEY] = started;
  // Ancestry is lost when a parent dies, so descendants are recorded while both live.
  if (existsSync('/proc/self/stat')) setInterval(() => noteDescendants(table()), LOOK_MS).unref();
  return started;
}

/** Programs of this repository and Node; a browser's processes may outlive their parents. */
export function leftProcesses(): LeftProcess[] {
  if (!existsSync('/proc/self/stat')) return [];
  const rows = table();
  const descendants = noteDescendants(rows);
  const left: LeftProcess[] = [];
  for (const row of rows) {
    const { pid, startedAt, state } = row;
    if (seen.get(pid) !== startedAt || state === 'Z' || state === 'X') continue;
    if (descendants.has(pid) && state !== 'T') continue;
    const command = commandOf(pid);
    if (command.includes(ROOT) || /(^|\/)node( |$)/.test(command)) left.push({ pid, startedAt, state, command });
  }
  return left;
}

function noteDescendants(rows: readonly Row[]): ReadonlySet<number> {
  const children = new Map<number, Row[]>();
  for (const row of rows) children.set(row.parent, [...(children.get(row.parent) ?? []), row]);
  const found = new Set<number>();
  const visit = (pid: number): void => {
    for (const child of children.get(pid) ?? []) {
      found.add(child.pid);
      seen.set(child.pid, child.startedAt);
      visit(child.pid);
    }
  };
  visit(process.pid);
  const alive = new Set(rows.map(({ pid }) => pid));
  for (const pid of seen.keys()) if (!alive.has(pid)) seen.delete(pid);
  return found;
}

/** proc_pid_stat(5): the name in parentheses may contain spaces. */
function table(): Row[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      return [{ pid: Number(name), state: fields[0] as string, parent: Number(fields[1]), startedAt: Number(fields[19]) }];
    } catch {
      // The process has ended.
      return [];
    }
  });
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
  } catch {
    return '';
  }
}
