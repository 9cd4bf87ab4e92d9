import { type ExecFileOptions, execFile } from 'node:child_process';

export interface CommandResult {
  /** Exit code; -1 for a command that did not start or was killed. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  /** `stdout`, then `stderr`. */
  readonly output: string;
}

/** Runs a command to its end, without input. Resolves for every exit code. */
export function runCommand(file: string, args: readonly string[], options: ExecFileOptions = {}): Promise<CommandResult> {
  return new Promise((resolve) => {
    const child = execFile(file, args, { maxBuffer: 64 * 1024 * 1024, ...options, encoding: 'utf8' }, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : -1;
      resolve({ code, stdout, stderr, output: stdout + stderr });
    });
    child.stdin?.end();
  });
}

/** Runs a program on this Node.js. */
export function runNode(args: readonly string[], options: ExecFileOptions = {}): Promise<CommandResult> {
  return runCommand(process.execPath, args, options);
}
