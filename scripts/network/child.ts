/** `Child`: a process of a local network that logs to a file. Ends with its parent, by the closed IPC channel. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';

interface ChildOptions {
  readonly name: string;
  /** Program other than Node.js, without an IPC channel. */
  readonly program?: string;
  /** Arguments; for Node.js, the script first. */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly logFile: string;
  /** User of the process. Default: the user of this process. */
  readonly user?: { readonly uid: number; readonly gid: number };
  /** A process group of its own, which the terminal's Ctrl-C does not reach. */
  readonly detached?: boolean;
}

export interface Child {
  readonly name: string;
  readonly pid: number;
  /** Resolves when the process has ended and its output is written. */
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  /** First message from the child over IPC. */
  readonly message: Promise<Record<string, unknown>>;
  /** Sends a message and resolves to the next message from the child. Rejects when the child ends instead. */
  ask(message: object): Promise<Record<string, unknown>>;
  /** Last lines of stderr, or else how the process ended. */
  lastWords(): string;
  kill(signal: NodeJS.Signals): void;
  /** Sends a signal (default SIGTERM), then SIGKILL after `graceMs`. */
  stop(graceMs?: number, signal?: NodeJS.Signals): Promise<void>;
}

const KEPT_STDERR_CHARACTERS = 4000;

/** Starts a child. Rejects when the start fails. */
export async function spawnChild(options: ChildOptions): Promise<Child> {
  const log = createWriteStream(options.logFile, { flags: 'a', mode: 0o600 });
  const { program, user, detached = false } = options;
  const child = spawn(program ?? process.execPath, options.argv, {
    env: definedOnly(options.env),
    stdio: ['ignore', 'pipe', 'pipe', ...(program === undefined ? (['ipc'] as const) : [])],
    detached,
    ...user,
  });
  let stderr = '';
  child.stdout?.on('data', (chunk: Buffer) => {
    log.write(chunk);
  });
  child.stderr?.on('data', (chunk: Buffer) => {
    log.write(chunk);
    stderr = (stderr + chunk.toString('utf8')).slice(-KEPT_STDERR_CHARACTERS);
  });
  const exited = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.once('close', (code, signal) => log.end(() => resolve({ code, signal })));
  });
  const nextMessage = (): Promise<Record<string, unknown>> =>
    new Promise((resolve) => void child.once('message', (value) => resolve(value as Record<string, unknown>)));
  const message = nextMessage();
  const pid = await untilStarted(child);
  return {
    name: options.name,
    pid,
    exited,
    message,
    ask: (question) => {
      const answer = nextMessage();
      child.send(question);
      const ended = exited.then(() => Promise.reject(new Error(`${options.name} ended: ${stderr.trim()}`)));
      return Promise.race([answer, ended]);
    },
    lastWords: () => stderr.trim() || describeEnd(child),
    kill: (signal) => void child.kill(signal),
    stop: (graceMs = 10_000, signal = 'SIGTERM') => stop(child, exited, graceMs, signal),
  };
}

function untilStarted(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('spawn', () => resolve(child.pid as number));
  });
}

async function stop(child: ChildProcess, exited: Promise<unknown>, graceMs: number, signal: NodeJS.Signals): Promise<void> {
  child.kill(signal);
  const timer = setTimeout(() => child.kill('SIGKILL'), graceMs);
  await exited;
  clearTimeout(timer);
}

function describeEnd(child: ChildProcess): string {
  if (child.signalCode !== null) return `it was ended by ${child.signalCode}`;
  return child.exitCode === null ? 'it is running' : `it ended with exit code ${child.exitCode}`;
}

function definedOnly(env: Readonly<Record<string, string | undefined>>): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined));
}
