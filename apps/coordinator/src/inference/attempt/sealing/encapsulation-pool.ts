/**
 * `EncapsulationPool` computes HPKE encapsulations (RFC 9180 section 4.1: ephemeral public key and shared secret) in advance, in a thread.
 *
 * Encapsulation is most of the cost of sealing a request to a provider. Used by attempts in plain mode.
 */
import { createRequire } from 'node:module';
import { Worker } from 'node:worker_threads';
import { type Encapsulation, encapsulate } from '@inference/protocol/crypto';
import { ENC_BYTES, type EncapsulationBatch, type EncapsulationRequest, PAIR_BYTES } from './thread-messages.js';

/** Jobs with a provider's key before precomputation starts. Most providers of a quiet network get no more jobs. */
const MIN_JOBS = 3;
/** Minimum and maximum target number of precomputed encapsulations per key, after the first {@link MIN_JOBS} jobs. */
const MIN_READY = 4;
const MAX_READY = 32;
/** Idle time after which a recipient's encapsulations are dropped, in milliseconds. */
const MAX_IDLE_MS = 120_000;
const MAX_RECIPIENTS = 1024;

/** Encapsulations to one X25519 key. */
interface RecipientPool {
  readonly recipient: Uint8Array;
  ready: Encapsulation[];
  /** Number requested from the thread and not received yet. */
  requestedCount: number;
  /** Target length of `ready`. Doubles when a job finds `ready` empty. */
  targetCount: number;
  jobs: number;
  lastJobAt: number;
}

interface EncapsulationPoolOptions {
  readonly now?: () => number;
  /** Called when the worker thread has failed. The main thread then computes all encapsulations. */
  readonly onError: (error: unknown) => void;
  readonly startThread?: () => Worker;
}

export class EncapsulationPool {
  /** Pools by recipient, least recently used first. */
  readonly #pools = new Map<string, RecipientPool>();
  readonly #options: EncapsulationPoolOptions;
  readonly #now: () => number;
  readonly #pruning: NodeJS.Timeout;
  #thread: Worker | null = null;
  /** True after a failure of the thread, and after `close`. Nothing is precomputed then. */
  #isDisabled = false;

  constructor(options: EncapsulationPoolOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    this.#pruning = setInterval(() => this.#prune(), MAX_IDLE_MS / 2);
    this.#pruning.unref();
  }

  /** Returns an encapsulation that was never used before. Throws SealingError `bad_key` on a malformed key. */
  take(recipient: Uint8Array): Encapsulation {
    const pool = this.#poolOf(recipient);
    const ready = pool.ready.pop();
    pool.jobs++;
    pool.lastJobAt = this.#now();
    if (ready === undefined && pool.jobs > MIN_JOBS) pool.targetCount = Math.min(MAX_READY, Math.max(MIN_READY, 2 * pool.targetCount));
    // Throws on a malformed key, before the worker thread gets the key.
    const encapsulation = ready ?? encapsulate(recipient);
    this.#refill(pool);
    return encapsulation;
  }

  /** Number of precomputed encapsulations to a key, for tests. */
  readyCount(recipient: Uint8Array): number {
    return this.#pools.get(nameOf(recipient))?.ready.length ?? 0;
  }

  /** Drops all precomputed encapsulations and stops the thread. */
  async close(): Promise<void> {
    clearInterval(this.#pruning);
    this.#isDisabled = true;
    for (const pool of this.#pools.values()) erase(pool);
    this.#pools.clear();
    await this.#thread?.terminate();
  }

  #poolOf(recipient: Uint8Array): RecipientPool {
    const name = nameOf(recipient);
    const known = this.#pools.get(name);
    const pool = known ?? { recipient: recipient.slice(), ready: [], requestedCount: 0, targetCount: 0, jobs: 0, lastJobAt: 0 };
    if (known !== undefined) this.#pools.delete(name);
    else if (this.#pools.size >= MAX_RECIPIENTS) this.#dropOldest();
    this.#pools.set(name, pool);
    return pool;
  }

  #refill(pool: RecipientPool): void {
    const missing = pool.targetCount - pool.ready.length - pool.requestedCount;
    // Waits until half of the target is missing: a message to the thread costs as much as a few encapsulations.
    if (this.#isDisabled || 2 * missing < pool.targetCount || missing === 0) return;
    pool.requestedCount += missing;
    try {
      this.#thread ??= this.#start();
      this.#thread.postMessage({ recipient: pool.recipient, count: missing } satisfies EncapsulationRequest);
    } catch (error) {
      this.#fail(error);
    }
  }

  #start(): Worker {
    const thread = (this.#options.startThread ?? startThread)();
    thread.unref();
    thread.on('message', (batch: EncapsulationBatch) => this.#receive(batch));
    thread.on('error', (error) => this.#fail(error));
    return thread;
  }

  #fail(error: unknown): void {
    this.#isDisabled = true;
    this.#options.onError(error);
  }

  #receive({ recipient, count, pairs }: EncapsulationBatch): void {
    const pool = this.#pools.get(nameOf(recipient));
    if (pool === undefined) {
      // The pool was dropped, so its secrets are erased.
      pairs?.fill(0);
      return;
    }
    // The batch may answer a request of an earlier pool of this recipient, which was dropped.
    pool.requestedCount = Math.max(0, pool.requestedCount - count);
    for (let at = 0; pairs !== null && at < pairs.length; at += PAIR_BYTES) {
      pool.ready.push({ enc: pairs.subarray(at, at + ENC_BYTES), sharedSecret: pairs.subarray(at + ENC_BYTES, at + PAIR_BYTES) });
    }
  }

  #prune(): void {
    const before = this.#now() - MAX_IDLE_MS;
    for (const pool of this.#pools.values()) {
      if (pool.lastJobAt > before) return;
      this.#dropOldest();
    }
  }

  #dropOldest(): void {
    for (const [name, pool] of this.#pools) {
      erase(pool);
      this.#pools.delete(name);
      return;
    }
  }
}

/** Resolves the entry file by `package.json`, which names it for the sources (tests) and for the build. Throws if the file is missing. */
function startThread(): Worker {
  const entry = createRequire(import.meta.url).resolve('#sealing-thread');
  const limits = { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 4 };
  return new Worker(entry, { execArgv: [], env: {}, resourceLimits: limits });
}

function erase(pool: RecipientPool): void {
  for (const { sharedSecret } of pool.ready) sharedSecret.fill(0);
  pool.ready = [];
}

function nameOf(recipient: Uint8Array): string {
  return Buffer.from(recipient.buffer, recipient.byteOffset, recipient.length).toString('latin1');
}
