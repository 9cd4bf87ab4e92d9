/** `spawnChild`: starts a process that logs to a file. This repository's programs exit when their IPC channel to this process closes. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { basename } from 'node:path';
import { StringDecoder } from 'node:string_decoder';

interface ChildOptions {
  readonly name: string;
  /** Program to run instead of Node.js; has no IPC channel. Default: Node.js. */
  readonly program?: string;
  /** Arguments. For Node.js, the script comes first, or the path of another `node` binary and then the script. */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly logFile: string;
  /** User of the process. Default: the user of this process. */
  readonly user?: { readonly uid: number; readonly gid: number };
  /** Starts a new process group, so that Ctrl-C in the terminal does not signal the process. Default: false. */
  readonly detached?: boolean;
}

export interface Child {
  readonly name: string;
  readonly pid: number;
  /** Resolves when the process has exited and the log is written. */
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  /** First message from the child over IPC. Never settles if the child exits first. */
  readonly message: Promise<Record<string, unknown>>;
  /** Sends a message and resolves to the child's next message. Rejects if the child exits first. */
  ask(message: object): Promise<Record<string, unknown>>;
  /** Last part of stderr; if stderr is empty, the exit code or signal. */
  exitReason(): string;
  kill(signal: NodeJS.Signals): void;
  /** Sends `signal` (default SIGTERM), and SIGKILL after `graceMs` (default 10 s). Resolves after the exit. */
  stop(graceMs?: number, signal?: NodeJS.Signals): Promise<void>;
}

const MAX_STDERR_CHARACTERS = 4000;

/** Starts a process. Rejects if the program cannot be started. */
export async function spawnChild(options: ChildOptions): Promise<Child> {
  const log = createWriteStream(options.logFile, { flags: 'a', mode: 0o600 });
  const { program, user, detached = false } = options;
  const [command, argv] = commandLine(options);
  const child = spawn(command, argv, {
    env: definedOnly(options.env),
    stdio: ['ignore', 'pipe', 'pipe', ...(program === undefined ? (['ipc'] as const) : [])],
    detached,
    ...user,
  });
  let stderr = '';
  const decoder = new StringDecoder('utf8');
  child.stdout?.on('data', (chunk: Buffer) => {
    log.write(chunk);
  });
  child.stderr?.on('data', (chunk: Buffer) => {
    log.write(chunk);
    stderr = (stderr + decoder.write(chunk)).slice(-MAX_STDERR_CHARACTERS);
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
    exitReason: () => stderr.trim() || describeExit(child),
    kill: (signal) => void child.kill(signal),
    stop: (graceMs = 10_000, signal = 'SIGTERM') => stop(child, exited, graceMs, signal),
  };
}

function commandLine({ program, argv }: ChildOptions): readonly [string, readonly string[]] {
  const [first = '', ...rest] = argv;
  if (program === undefined && basename(first) === 'node') return [first, rest];
  return [program ?? process.execPath, argv];
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

function describeExit(child: ChildProcess): string {
  if (child.signalCode !== null) return `signal ${child.signalCode}`;
  return child.exitCode === null ? 'still running' : `exit code ${child.exitCode}`;
}

function definedOnly(env: Readonly<Record<string, string | undefined>>): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined));
}
