/** `forbidCoreDumps` forbids core dumps of this process and its children on Linux. A dump would contain prompts and keys. */
import { execFile } from 'node:child_process';

type CoreDumps = 'off' | 'on' | 'unknown';

/** Returns whether core dumps are off now. On macOS, the service definition must have set the limit. */
export async function forbidCoreDumps(): Promise<CoreDumps> {
  if (process.platform === 'linux' && (await runProgram('prlimit', ['--pid', String(process.pid), '--core=0:0'])) !== null) return 'off';
  // A child has the limits of its parent.
  const limit = (await runProgram('/bin/sh', ['-c', 'ulimit -c']))?.trim();
  return limit === undefined ? 'unknown' : limit === '0' ? 'off' : 'on';
}

function runProgram(program: string, args: readonly string[]): Promise<string | null> {
  return new Promise((resolve) => {
    execFile(program, [...args], { timeout: 5_000, encoding: 'utf8' }, (error, stdout) => resolve(error === null ? stdout : null));
  });
}
