/**
 * `SignInQueue` limits concurrent requests that hash a password. Waiting requests are served round-robin by client.
 *
 * A client is a known browser or a network. Requests wait before better-auth runs, so a refused request has no effect.
 */

interface SignInQueueOptions {
  readonly maxRunning: number;
  readonly maxWaiting?: number;
  readonly maxWaitingPerClient?: number;
}

/** At 12 to 24 hashes a second, the last request of a full queue waits five to ten seconds. */
const MAX_WAITING = 128;
const MAX_WAITING_PER_CLIENT = 32;

/**
 * Scope `client`: too many requests of this client wait, or one of a client with fewer displaced this request. Scope `all`: the whole
 * queue is full.
 */
export class SignInQueueFull extends Error {
  constructor(readonly scope: 'client' | 'all') {
    super(`too many sign-ins wait (${scope})`);
    this.name = 'SignInQueueFull';
  }
}

export const QUEUE_FULL_MESSAGES: Readonly<Record<SignInQueueFull['scope'], string>> = {
  client: 'Too many sign-ins from this address at once. Try again in a few seconds.',
  all: 'Too many people are signing in right now. Try again in a few seconds.',
};

interface Waiting {
  readonly client: string;
  readonly start: () => void;
  readonly refuse: (error: Error) => void;
}

export class SignInQueue {
  readonly #options: Required<SignInQueueOptions>;
  /** Waiting requests by client. The first client is served next, and then moves to the end. */
  readonly #lines = new Map<string, Waiting[]>();
  #running = 0;
  #waiting = 0;

  constructor(options: SignInQueueOptions) {
    this.#options = { maxWaiting: MAX_WAITING, maxWaitingPerClient: MAX_WAITING_PER_CLIENT, ...options };
  }

  get running(): number {
    return this.#running;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Runs a task when its turn comes. Throws {@link SignInQueueFull} if refused or displaced, or the reason of `signal`. */
  async run<T>(client: string, signal: AbortSignal, task: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    if (this.#running < this.#options.maxRunning) this.#running++;
    else await this.#waitForTurn(client, signal);
    try {
      return await task();
    } finally {
      this.#startNext();
    }
  }

  #waitForTurn(client: string, signal: AbortSignal): Promise<void> {
    const { maxWaiting, maxWaitingPerClient } = this.#options;
    const ownLength = this.#lines.get(client)?.length ?? 0;
    if (ownLength >= maxWaitingPerClient) throw new SignInQueueFull('client');
    if (this.#waiting >= maxWaiting && !this.#displaceFor(ownLength)) throw new SignInQueueFull('all');
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#remove(waiting);
        reject(signal.reason);
      };
      const settle = (): void => signal.removeEventListener('abort', leave);
      const waiting: Waiting = {
        client,
        start: () => {
          settle();
          resolve();
        },
        refuse: (error) => {
          settle();
          reject(error);
        },
      };
      const line = this.#lines.get(client);
      if (line === undefined) this.#lines.set(client, [waiting]);
      else line.push(waiting);
      this.#waiting++;
      signal.addEventListener('abort', leave, { once: true });
    });
  }

  /** Rejects the newest request of the client with the most. Returns false if the new request's client would then have as many. */
  #displaceFor(ownLength: number): boolean {
    let longest: Waiting[] = [];
    for (const line of this.#lines.values()) if (line.length > longest.length) longest = line;
    const newest = longest.at(-1);
    if (newest === undefined || longest.length <= ownLength + 1) return false;
    this.#remove(newest);
    newest.refuse(new SignInQueueFull('client'));
    return true;
  }

  #startNext(): void {
    const [entry] = this.#lines;
    const next = entry?.[1][0];
    if (entry === undefined || next === undefined) {
      this.#running--;
      return;
    }
    this.#remove(next);
    const [client, line] = entry;
    if (line.length > 0) {
      this.#lines.delete(client);
      this.#lines.set(client, line);
    }
    next.start();
  }

  #remove(waiting: Waiting): void {
    const line = this.#lines.get(waiting.client);
    const place = line?.indexOf(waiting) ?? -1;
    if (line === undefined || place === -1) return;
    line.splice(place, 1);
    this.#waiting--;
    if (line.length === 0) this.#lines.delete(waiting.client);
  }
}
