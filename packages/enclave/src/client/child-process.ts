/** Starts and ends a helper process. Passes an allowlist of environment variables, without `NODE_OPTIONS`, `DYLD_…` and secrets. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { EnclaveError } from '../contract/errors.js';

export type Child = ChildProcessByStdio<Writable, Readable, Readable>;

const PASSED_VARIABLES = ['PATH', 'HOME', 'TMPDIR', 'USER', 'LANG'];
/** Maximum duration of each step of ending a child, in milliseconds. */
const GRACE_MS = 1_000;

/** Starts the helper. Throws {@link EnclaveError} `start_failed` if the program does not exist. */
export async function startChild(command: readonly string[]): Promise<Child> {
  const [program, ...args] = command;
  if (program === undefined) throw new EnclaveError('start_failed', 'the enclave helper command is empty');
  const env = Object.fromEntries(PASSED_VARIABLES.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])));
  return new Promise((resolve, reject) => {
    const onError = (error: Error) => {
      reject(new EnclaveError('start_failed', `the enclave helper could not be started: ${error.message}`, { cause: error }));
    };
    try {
      const child = spawn(program, args, { env, stdio: ['pipe', 'pipe', 'pipe'], windowsHide: true });
      child.once('error', onError);
      child.once('spawn', () => resolve(child));
    } catch (error) {
      onError(error as Error);
    }
  });
}

/** Ends the child: end of stdin, then SIGTERM, then SIGKILL. Resolves when the child has exited. */
export async function endChild(child: Child): Promise<void> {
  const exited = untilExit(child);
  child.stdin.end();
  if (await endsWithin(exited, GRACE_MS)) return;
  child.kill('SIGTERM');
  if (await endsWithin(exited, GRACE_MS)) return;
  child.kill('SIGKILL');
  await exited;
}

/** Resolves when the child has exited. Needs no deadline: callers have ended the child, and SIGKILL cannot be ignored. */
export async function untilExit(child: Child): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  await new Promise<void>((resolve) => child.once('exit', () => resolve()));
}

async function endsWithin(ended: Promise<void>, ms: number): Promise<boolean> {
  const timer = new AbortController();
  const timeout = delay(ms, false, { signal: timer.signal }).catch(() => false);
  const result = await Promise.race([ended.then(() => true), timeout]);
  timer.abort();
  return result;
}
