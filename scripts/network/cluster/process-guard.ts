/**
 * Ends programs that do not watch their parent, such as NATS and PostgreSQL, after a parent that was killed: a shell that waits for
 * the end of its standard input.
 */
import { type ChildProcess, spawn } from 'node:child_process';

/** Grace for the programs that end by themselves and still use the guarded ones, in seconds. */
const GRACE_SECONDS = 6;

/** Lines: `+ PID` guards a process, `- PID` releases it; the end of input ends all guarded ones. */
const SCRIPT = `
trap '' INT TERM HUP
pids=' '
while read -r verb pid; do
  case "$verb" in
    +) pids="$pids$pid " ;;
    -) pids=$(printf '%s' "$pids" | sed "s/ $pid / /") ;;
    done) exit 0 ;;
  esac
done
sleep ${GRACE_SECONDS}
for pid in $pids; do kill -INT "$pid" 2>/dev/null; done
`;

export class ProcessGuard {
  readonly #shell: ChildProcess;

  constructor() {
    this.#shell = spawn('/bin/sh', ['-c', SCRIPT], { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
    this.#shell.on('error', () => {});
    this.#shell.stdin?.on('error', () => {});
  }

  add(pid: number): void {
    this.#shell.stdin?.write(`+ ${pid}\n`);
  }

  /** For a process that has ended: its number may be given to another. */
  remove(pid: number): void {
    this.#shell.stdin?.write(`- ${pid}\n`);
  }

  async close(): Promise<void> {
    const exited = new Promise((resolve) => this.#shell.once('exit', resolve));
    this.#shell.stdin?.end('done\n');
    await exited;
  }
}
