/** Raw helper process without the client, for contract violations. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

export interface Reply {
  readonly id: number | null;
  readonly ok: boolean;
  readonly error?: { readonly code: string; readonly message: string };
  readonly [member: string]: unknown;
}

const REPLY_DEADLINE_MS = 60_000;

export class RawHelper {
  readonly child: ChildProcessWithoutNullStreams;
  /** Resolves after the process has exited and its output has been read. */
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  readonly #replies: Reply[] = [];
  readonly #waiting: ((reply: Reply) => void)[] = [];
  readonly #closed: Promise<never>;
  #lastId = 1_000_000;
  stderr = '';

  constructor(command: readonly string[]) {
    const [program, ...args] = command;
    this.child = spawn(program as string, args, { stdio: 'pipe' });
    this.exited = once(this.child, 'close').then(([code, signal]) => ({ code, signal }));
    this.#closed = new Promise((_, reject) => {
      this.child.once('close', (code) => reject(new Error(`the helper has ended with ${code}; stderr: ${this.stderr}`)));
    });
    this.#closed.catch(() => {});
    this.child.stdin.on('error', () => {});
    this.child.stderr.on('data', (bytes: Buffer) => {
      this.stderr += bytes.toString();
    });
    createInterface({ input: this.child.stdout }).on('line', (line) => {
      const reply = JSON.parse(line) as Reply;
      const waiting = this.#waiting.shift();
      if (waiting === undefined) this.#replies.push(reply);
      else waiting(reply);
    });
  }

  write(bytes: string | Uint8Array): void {
    this.child.stdin.write(bytes);
  }

  /** Next reply of any id. */
  async next(): Promise<Reply> {
    const reply = this.#replies.shift();
    if (reply !== undefined) return reply;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no reply from the helper; stderr: ${this.stderr}`)), REPLY_DEADLINE_MS);
    });
    const arrived = new Promise<Reply>((resolve) => this.#waiting.push(resolve));
    try {
      return await Promise.race([arrived, late, this.#closed]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Sends one request and returns its reply. */
  async request(op: unknown, parameters: object = {}): Promise<Reply> {
    const id = ++this.#lastId;
    this.write(`${JSON.stringify({ id, op, ...parameters })}\n`);
    const reply = await this.next();
    if (reply.id !== id) throw new Error(`a reply to ${reply.id} instead of ${id}: ${JSON.stringify(reply)}`);
    return reply;
  }

  /** Ends the input and waits for the exit. */
  async end(): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
    this.child.stdin.end();
    return this.exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.child.kill('SIGKILL');
    await this.exited;
  }
}
