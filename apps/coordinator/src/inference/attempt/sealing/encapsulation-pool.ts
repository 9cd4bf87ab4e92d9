/**
 * Encapsulated secrets for the sealing of jobs (RFC 9180 section 4.1). Making one is most of the work of sealing, and it depends on
 * the recipient alone; so a provider that gets many jobs has some made ahead, on a thread of their own. Each is handed out once
 * and then forgotten here; where none waits, one is made on the spot.
 */
import { createRequire } from 'node:module';
import { Worker } from 'node:worker_threads';
import { type Encapsulation, encapsulate } from '@inference/protocol/crypto';
import { type Delivery, ENC_BYTES, type Order, PAIR_BYTES } from './thread-messages.js';

/** Of a provider, so many jobs have none made ahead: most providers of a quiet network never get more. */
const JOBS_BEFORE = 3;
/** Made ahead for one provider, at least once they are, and at most. */
const FEWEST = 4;
const MAX = 32;
/** What waited for so long without any job is forgotten, in milliseconds. */
const KEPT_MS = 120_000;
const MAX_RECIPIENTS = 1024;

interface Stock {
  readonly recipient: Uint8Array;
  ready: Encapsulation[];
  ordered: number;
  /** How many should wait. Doubled whenever none did. */
  size: number;
  jobs: number;
  lastAt: number;
}

export interface EncapsulationPoolOptions {
  readonly now?: () => number;
  /** Hears that the thread has failed. Jobs are sealed without it from then on. */
  readonly onError: (error: unknown) => void;
  readonly startThread?: () => Worker;
}

export class EncapsulationPool {
  /** The one that had a job last is the last. */
  readonly #stocks = new Map<string, Stock>();
  readonly #options: EncapsulationPoolOptions;
  readonly #now: () => number;
  readonly #pruning: NodeJS.Timeout;
  #thread: Worker | null = null;
  #failed = false;

  constructor(options: EncapsulationPoolOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    this.#pruning = setInterval(() => this.#prune(), KEPT_MS / 2);
    this.#pruning.unref();
  }

  /** One that nobody had before. Throws SealingError `bad_key` on a key that nothing can be sealed to. */
  take(recipient: Uint8Array): Encapsulation {
    const stock = this.#stockOf(recipient);
    const ready = stock.ready.pop();
    stock.jobs++;
    stock.lastAt = this.#now();
    if (ready === undefined && stock.jobs > JOBS_BEFORE) stock.size = Math.min(MAX, Math.max(FEWEST, 2 * stock.size));
    this.#fillUp(stock);
    return ready ?? encapsulate(recipient);
  }

  /** How many wait for this recipient. */
  waiting(recipient: Uint8Array): number {
    return this.#stocks.get(nameOf(recipient))?.ready.length ?? 0;
  }

  /** Forgets what was made ahead, and makes no more. */
  async close(): Promise<void> {
    clearInterval(this.#pruning);
    this.#failed = true;
    for (const stock of this.#stocks.values()) forget(stock);
    this.#stocks.clear();
    await this.#thread?.terminate();
  }

  #stockOf(recipient: Uint8Array): Stock {
    const name = nameOf(recipient);
    const known = this.#stocks.get(name);
    const stock = known ?? { recipient: recipient.slice(), ready: [], ordered: 0, size: 0, jobs: 0, lastAt: 0 };
    if (known !== undefined) this.#stocks.delete(name);
    else if (this.#stocks.size >= MAX_RECIPIENTS) this.#dropOldest();
    this.#stocks.set(name, stock);
    return stock;
  }

  #fillUp(stock: Stock): void {
    const missing = stock.size - stock.ready.length - stock.ordered;
    // In halves, since a message costs as much as a few of them save.
    if (this.#failed || 2 * missing < stock.size || missing === 0) return;
    stock.ordered += missing;
    try {
      this.#thread ??= this.#start();
      this.#thread.postMessage({ recipient: stock.recipient, count: missing } satisfies Order);
    } catch (error) {
      this.#fail(error);
    }
  }

  #start(): Worker {
    const thread = (this.#options.startThread ?? startThread)();
    thread.unref();
    thread.on('message', (delivery: Delivery) => this.#deliver(delivery));
    thread.on('error', (error) => this.#fail(error));
    return thread;
  }

  #fail(error: unknown): void {
    this.#failed = true;
    this.#options.onError(error);
  }

  #deliver({ recipient, made }: Delivery): void {
    const stock = this.#stocks.get(nameOf(recipient));
    if (stock === undefined) {
      made?.fill(0);
      return;
    }
    // A key that nothing can be sealed to says so where a job is sealed.
    for (let at = 0; made !== null && at < made.length; at += PAIR_BYTES) {
      stock.ready.push({ enc: made.subarray(at, at + ENC_BYTES), sharedSecret: made.subarray(at + ENC_BYTES, at + PAIR_BYTES) });
      stock.ordered--;
    }
  }

  #prune(): void {
    const before = this.#now() - KEPT_MS;
    for (const stock of this.#stocks.values()) {
      if (stock.lastAt > before) return;
      this.#dropOldest();
    }
  }

  #dropOldest(): void {
    for (const [name, stock] of this.#stocks) {
      forget(stock);
      this.#stocks.delete(name);
      return;
    }
  }
}

/** Its entry is named in package.json, so that it is found from the sources (tests) and from the build alike. Throws where it is not. */
function startThread(): Worker {
  const entry = createRequire(import.meta.url).resolve('#sealing-thread');
  const limits = { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 4 };
  return new Worker(entry, { execArgv: [], env: {}, resourceLimits: limits });
}

function forget(stock: Stock): void {
  for (const { sharedSecret } of stock.ready) sharedSecret.fill(0);
  stock.ready = [];
}

function nameOf(recipient: Uint8Array): string {
  return Buffer.from(recipient.buffer, recipient.byteOffset, recipient.length).toString('latin1');
}
