/** `HelperProcess`: one running helper. Matches replies to requests by id; kills the process after invalid output or a timeout. */

import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { lazyValidator } from '@inference/protocol';
import Type from 'typebox';
import type { Validator } from 'typebox/compile';
import { EnclaveError } from '../contract/errors.js';
import { LineSplitter } from '../contract/line-splitter.js';
import { ReplySchema, type ResultOf, ResultSchemas } from '../contract/replies.js';
import { MAX_LINE_BYTES, type Operation, type ParametersOf } from '../contract/requests.js';

/** Maximum number of pending requests per helper. */
const MAX_PENDING = 4_096;

const replyValidator = lazyValidator(ReplySchema);
/** Validators of results, by operation. */
const resultValidators = new Map<Operation, () => Validator>(
  Object.entries(ResultSchemas).map(([op, schema]) => [op as Operation, lazyValidator(Type.Unsafe(schema))] as const),
);

/** A request without a reply. */
interface PendingRequest {
  readonly op: Operation;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: EnclaveError) => void;
  readonly timer: NodeJS.Timeout;
}

interface HelperProcessEvents {
  readonly onStderr: (line: string) => void;
  /** Called once, when the process can no longer be used. */
  readonly onEnd: (reason: EnclaveError) => void;
}

export class HelperProcess {
  readonly #child: Child;
  readonly #events: HelperProcessEvents;
  /** Requests without a reply, by id. */
  readonly #pending = new Map<number, PendingRequest>();
  /** Id of the last request. */
  #lastId = 0;
  /** Reason why the process can no longer be used, or null. */
  #ended: EnclaveError | null = null;

  /** Starts a helper. Throws {@link EnclaveError} `start_failed`. */
  static async start(command: readonly string[], events: HelperProcessEvents): Promise<HelperProcess> {
    return new HelperProcess(await startChild(command), events);
  }

  private constructor(child: Child, events: HelperProcessEvents) {
    this.#child = child;
    this.#events = events;
    const lines = new LineSplitter();
    child.stdout.on('data', (bytes: Buffer) => {
      for (const line of lines.push(bytes)) {
        if (this.#ended !== null) return;
        if (line.kind === 'line') this.#receive(line.text);
        else this.#breach(line.kind === 'too_long' ? `a line over ${MAX_LINE_BYTES} bytes` : 'a line that is not UTF-8');
      }
    });
    const stderr = new StderrLines();
    child.stderr.on('data', (bytes: Buffer) => {
      for (const line of stderr.push(bytes)) events.onStderr(line);
    });
    // Writes to a dead helper fail here; the exit event reports the death.
    child.stdin.on('error', () => {});
    child.once('exit', (code, signal) => {
      this.#end(new EnclaveError('exited', `the enclave helper exited (${signal ?? `exit code ${code}`})`));
    });
    child.on('error', () => {});
  }

  /** Resolves when the process has exited, which can be later than `onEnd`. */
  get exited(): Promise<void> {
    return untilExit(this.#child);
  }

  /** Null: the process can be used. */
  get ended(): EnclaveError | null {
    return this.#ended;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Sends a request. The helper is killed after `timeoutMs` without an answer, even if the request was aborted. */
  async request<Op extends Operation>(
    op: Op,
    parameters: ParametersOf<Op>,
    timeoutMs: number,
    signal?: AbortSignal,
  ): Promise<ResultOf<Op>> {
    if (this.#ended !== null) throw this.#ended;
    if (signal?.aborted) throw abortedError(signal);
    if (this.#pending.size >= MAX_PENDING) throw new EnclaveError('busy', `${MAX_PENDING} requests already wait for the enclave helper`);
    const id = ++this.#lastId;
    const line = `${JSON.stringify({ id, op, ...parameters })}\n`;
    if (Buffer.byteLength(line) > MAX_LINE_BYTES) throw new EnclaveError('bad_request', `the request is over ${MAX_LINE_BYTES} bytes`);
    return new Promise((resolve, reject) => {
      const onAbort = () => reject(abortedError(signal));
      signal?.addEventListener('abort', onAbort, { once: true });
      const timer = setTimeout(() => this.#expire(id), timeoutMs);
      this.#pending.set(id, {
        op,
        timer,
        resolve: (result) => {
          signal?.removeEventListener('abort', onAbort);
          resolve(result as ResultOf<Op>);
        },
        reject: (error) => {
          signal?.removeEventListener('abort', onAbort);
          reject(error);
        },
      });
      this.#child.stdin.write(line);
    });
  }

  /** Ends the helper orderly and fails pending requests with this reason. Resolves when the process has exited. */
  async close(reason: EnclaveError): Promise<void> {
    this.#end(reason);
    await endChild(this.#child);
  }

  /** Kills the helper (SIGKILL), and fails pending requests with this reason. */
  kill(reason: EnclaveError): void {
    this.#child.kill('SIGKILL');
    this.#end(reason);
  }

  #receive(text: string): void {
    const reply = parse(text);
    if (reply === undefined || !replyValidator().Check(reply)) {
      this.#breach('a line that is no reply');
      return;
    }
    const pending = reply.id === null ? undefined : this.#pending.get(reply.id);
    if (reply.id === null || pending === undefined) {
      this.#breach('a reply to no request');
      return;
    }
    if (reply.ok && resultValidators.get(pending.op)?.().Check(reply) !== true) {
      this.#breach(`a malformed result of ${pending.op}`);
      return;
    }
    this.#pending.delete(reply.id);
    clearTimeout(pending.timer);
    if (reply.ok) pending.resolve(reply);
    else pending.reject(new EnclaveError(reply.error.code, `enclave helper: ${reply.error.message}`));
  }

  /** Kills the helper after invalid output. `what`: the output, as the object of "sent". */
  #breach(what: string): void {
    this.kill(new EnclaveError('bad_reply', `the enclave helper sent ${what}`));
  }

  #expire(id: number): void {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    pending?.reject(new EnclaveError('timeout', `the enclave helper did not answer ${pending.op} in time`));
    this.kill(new EnclaveError('restarted', 'the enclave helper hung and was killed'));
  }

  #end(reason: EnclaveError): void {
    if (this.#ended !== null) return;
    this.#ended = reason;
    for (const pending of this.#pending.values()) {
      clearTimeout(pending.timer);
      pending.reject(reason);
    }
    this.#pending.clear();
    this.#events.onEnd(reason);
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function abortedError(signal: AbortSignal | undefined): EnclaveError {
  return new EnclaveError('aborted', 'the request to the enclave helper was aborted', { cause: signal?.reason });
}

/** Maximum length of a stderr line in the log, in UTF-16 code units. */
const MAX_STDERR_LINE_LENGTH = 512;
/** Maximum stderr lines per helper process; bounds the log of a helper in a loop. */
const MAX_STDERR_LINES = 200;

/** `StderrLines`: a helper's stderr as log lines, without control characters, bounded in length and number. */
class StderrLines {
  readonly #splitter = new LineSplitter(8 * 1024);
  /** Number of lines returned so far. */
  #passed = 0;

  /** Printable lines that end in these bytes. */
  *push(bytes: Uint8Array): Generator<string> {
    for (const line of this.#splitter.push(bytes)) {
      if (this.#passed === MAX_STDERR_LINES) return;
      this.#passed++;
      if (this.#passed === MAX_STDERR_LINES) yield '(further output of this helper is not shown)';
      else if (line.kind === 'line') yield toPrintable(line.text);
      else yield line.kind === 'too_long' ? '(a line too long to show)' : '(a line that is not text)';
    }
  }
}

/** The line with spaces for control characters, at most `MAX_STDERR_LINE_LENGTH` long. */
function toPrintable(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, ' ').slice(0, MAX_STDERR_LINE_LENGTH);
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/** Environment variables that a helper gets. `NODE_OPTIONS`, `DYLD_…` and secrets are not among them. */
const PASSED_VARIABLES = ['PATH', 'HOME', 'TMPDIR', 'USER', 'LANG'];
/** Maximum duration of each step of ending a child, in milliseconds. */
const GRACE_MS = 1_000;

/** Starts the helper. Throws {@link EnclaveError} `start_failed` if the program cannot be started. */
async function startChild(command: readonly string[]): Promise<Child> {
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
async function endChild(child: Child): Promise<void> {
  const exited = untilExit(child);
  child.stdin.end();
  if (await endsWithin(exited, GRACE_MS)) return;
  child.kill('SIGTERM');
  if (await endsWithin(exited, GRACE_MS)) return;
  child.kill('SIGKILL');
  await exited;
}

/** Resolves when the child has exited. Needs no deadline: callers have ended the child, and SIGKILL cannot be ignored. */
async function untilExit(child: Child): Promise<void> {
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
