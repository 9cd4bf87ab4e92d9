/** `ProcessGuard`: a child shell that stops NATS and PostgreSQL when this process dies, which closes the shell's standard input. */
import { type ChildProcess, spawn } from 'node:child_process';

/** Seconds before the guarded processes are stopped, so that coordinators can exit first. */
const GRACE_SECONDS = 6;

/** Input lines: `+ PID` adds a process, `- PID` removes a process, `done` exits. End of input without `done` stops all processes. */
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
  /** Resolves also if the shell could not start. */
  readonly #exited: Promise<void>;

  constructor() {
    this.#shell = spawn('/bin/sh', ['-c', SCRIPT], { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
    this.#exited = new Promise((resolve) => {
      this.#shell.once('exit', () => resolve());
      this.#shell.on('error', () => resolve());
    });
    this.#shell.stdin?.on('error', () => {});
  }

  add(pid: number): void {
    this.#shell.stdin?.write(`+ ${pid}\n`);
  }

  /** Removes an exited process: the system may reuse the id. */
  remove(pid: number): void {
    this.#shell.stdin?.write(`- ${pid}\n`);
  }

  async close(): Promise<void> {
    this.#shell.stdin?.end('done\n');
    await this.#exited;
  }
}
