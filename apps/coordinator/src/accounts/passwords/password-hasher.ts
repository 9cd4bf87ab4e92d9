/** `PasswordHasher` computes scrypt hashes on at most two worker threads, so that Node's shared thread pool stays free. */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { type Derivation, type DerivedKey, KEY_BYTES, SCRYPT_COST } from './thread-messages.js';

/** Each hash occupies a processor core for about 85 ms. */
export const MAX_HASHES_AT_ONCE = 2;
const SALT_BYTES = 16;
const STORED_HASH = /^([0-9a-f]+):([0-9a-f]+)$/i;

interface Task {
  readonly derivation: Derivation;
  readonly resolve: (key: Uint8Array) => void;
  readonly reject: (error: Error) => void;
}

interface PasswordHasherOptions {
  /** Cost parameter N of scrypt, a power of two. Default: better-auth's. A hash verifies only with the N that it was made with. */
  readonly cost?: number | undefined;
  /** Default: all processors but one. Never above `MAX_HASHES_AT_ONCE`. */
  readonly maxThreads?: number;
  readonly startThread?: () => Worker;
}

export class PasswordHasher {
  readonly #cost: number;
  readonly #startThread: () => Worker;
  readonly #maxThreads: number;
  readonly #idle: Worker[] = [];
  readonly #running = new Map<Worker, Task>();
  readonly #waiting: Task[] = [];
  #isClosed = false;

  constructor(options: PasswordHasherOptions = {}) {
    this.#cost = options.cost ?? SCRYPT_COST;
    this.#startThread = options.startThread ?? startThread;
    this.#maxThreads = Math.min(MAX_HASHES_AT_ONCE, options.maxThreads ?? Math.max(1, availableParallelism() - 1));
  }

  get runningCount(): number {
    return this.#running.size;
  }

  /** Returns `<salt>:<key>` in hexadecimal, the format of better-auth, the sign-in library. */
  async hash(password: string): Promise<string> {
    const salt = randomBytes(SALT_BYTES).toString('hex');
    return `${salt}:${Buffer.from(await this.#derive(password, salt)).toString('hex')}`;
  }

  async verify({ hash, password }: { readonly hash: string; readonly password: string }): Promise<boolean> {
    const [, salt, key] = STORED_HASH.exec(hash) ?? [];
    if (salt === undefined || key === undefined) throw new Error('a stored password hash is damaged');
    const expected = Buffer.from(key, 'hex');
    return expected.length === KEY_BYTES && timingSafeEqual(await this.#derive(password, salt), expected);
  }

  /** Ends the threads. Running and queued hashes are rejected. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const threads = [...this.#idle, ...this.#running.keys()];
    for (const task of [...this.#running.values(), ...this.#waiting]) task.reject(new Error('password hashing has stopped'));
    this.#idle.length = 0;
    this.#running.clear();
    this.#waiting.length = 0;
    await Promise.all(threads.map((thread) => thread.terminate()));
  }

  #derive(password: string, salt: string): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) return reject(new Error('password hashing has stopped'));
      this.#waiting.push({ derivation: { password: password.normalize('NFKC'), salt, cost: this.#cost }, resolve, reject });
      this.#runNext();
    });
  }

  #runNext(): void {
    while (this.#waiting.length > 0 && this.#running.size < this.#maxThreads) {
      const task = this.#waiting.shift() as Task;
      try {
        const thread = this.#idle.pop() ?? this.#start();
        this.#running.set(thread, task);
        thread.postMessage(task.derivation);
      } catch (error) {
        task.reject(error instanceof Error ? error : new Error('a password thread could not be started'));
      }
    }
  }

  #start(): Worker {
    const thread = this.#startThread();
    thread.unref();
    thread.on('message', ({ key }: DerivedKey) => {
      const task = this.#running.get(thread);
      if (!this.#running.delete(thread)) return;
      this.#idle.push(thread);
      if (key === null) task?.reject(new Error('a password could not be hashed'));
      else task?.resolve(key);
      this.#runNext();
    });
    thread.on('error', (error) => this.#dropThread(thread, error));
    thread.on('exit', () => this.#dropThread(thread, new Error('a password thread has ended')));
    return thread;
  }

  /** Rejects the hash, if any, of a failed or ended thread. Waiting hashes start a new thread at once. */
  #dropThread(thread: Worker, error: unknown): void {
    const index = this.#idle.indexOf(thread);
    if (index !== -1) this.#idle.splice(index, 1);
    const task = this.#running.get(thread);
    if (this.#running.delete(thread)) task?.reject(error instanceof Error ? error : new Error('a password thread has failed'));
    this.#runNext();
  }
}

/** `imports` of package.json resolves `#password-thread` to thread.ts in tests, and to the built file otherwise. */
function startThread(): Worker {
  const entry = createRequire(import.meta.url).resolve('#password-thread');
  const limits = { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 4 };
  return new Worker(entry, { execArgv: [], env: {}, resourceLimits: limits });
}
