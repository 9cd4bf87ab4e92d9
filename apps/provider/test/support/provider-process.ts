/** `ProviderProcess`: runs `inference-provider serve` as a child process. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { descendantsOf } from '../../../../test/support/processes.js';

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

export interface LogLine {
  readonly event?: string;
  readonly [member: string]: unknown;
}

export class ProviderProcess {
  stdout = '';
  stderr = '';
  readonly exit: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;

  private constructor(
    readonly child: ChildProcess,
    private readonly dataDir: string,
  ) {
    child.stdout?.on('data', (data: Buffer) => (this.stdout += data.toString()));
    child.stderr?.on('data', (data: Buffer) => (this.stderr += data.toString()));
    this.exit = new Promise((resolve) => child.once('close', (code, signal) => resolve({ code, signal })));
  }

  static start(coordinator: string, args: readonly string[] = ['--simulated-enclave'], dataDir?: string): ProviderProcess {
    const dir = dataDir ?? mkdtempSync(join(tmpdir(), 'provider-'));
    // Simulated, so that heat and battery of the test machine do not affect results.
    const host = args.includes('--simulated-enclave') && !args.includes('--simulated-host') ? ['--simulated-host', join(dir, 'host')] : [];
    const child = spawn(process.execPath, [MAIN, 'serve', '--coordinator', coordinator, '--data-dir', dir, ...args, ...host], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    return new ProviderProcess(child, dir);
  }

  /** Log lines so far. */
  log(): LogLine[] {
    return this.stdout
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as LogLine);
  }

  async logged(event: string, timeoutMs = 100_000): Promise<LogLine> {
    const deadline = Date.now() + timeoutMs;
    for (;;) {
      const line = this.log().find((candidate) => candidate.event === event);
      if (line !== undefined) return line;
      if (this.child.exitCode !== null || this.child.signalCode !== null) throw this.#ended();
      if (Date.now() > deadline) throw new Error(`${event} was not logged:\n${this.stdout}\n${this.stderr}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** Awaits a promise; throws with all output if the process ends before. */
  whileItRuns<T>(awaited: Promise<T>): Promise<T> {
    return Promise.race([awaited, this.exit.then(() => Promise.reject(this.#ended()))]);
  }

  #ended(): Error {
    return new Error(`the provider has ended:\n${this.stdout}\n${this.stderr}`);
  }

  /** Ends the process and its children, and removes its data. */
  async dispose(): Promise<void> {
    // A suspended child (SIGSTOP) would not notice that its parent exits.
    const children = this.child.pid === undefined ? [] : descendantsOf(this.child.pid);
    this.child.kill('SIGKILL');
    for (const { pid } of children) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // The child has already ended.
      }
    }
    await this.exit;
    rmSync(this.dataDir, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Child processes, from /proc. Linux only. */
export function childrenOf(pid: number): { pid: number; command: string }[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
        const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
        if (parent !== pid) return [];
        return [{ pid: Number(name), command: readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ') }];
      } catch {
        return [];
      }
    });
}

/** Whether a process exists and is not a zombie. Linux only. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}
