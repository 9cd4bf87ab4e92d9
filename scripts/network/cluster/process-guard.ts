/** `ProcessGuard`: ends NATS and PostgreSQL if this process is killed. A shell notices by the end of its standard input. */
import { type ChildProcess, spawn } from 'node:child_process';

/** Grace for programs that still use the guarded processes, in seconds. */
const GRACE_SECONDS = 6;

/** Input lines: `+ PID` guards a process, `- PID` releases the process. The end of input ends all guarded processes. */
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

  /** Releases a process that has ended, because its id may be reused. */
  remove(pid: number): void {
    this.#shell.stdin?.write(`- ${pid}\n`);
  }

  async close(): Promise<void> {
    const exited = new Promise((resolve) => this.#shell.once('exit', resolve));
    this.#shell.stdin?.end('done\n');
    await exited;
  }
}
