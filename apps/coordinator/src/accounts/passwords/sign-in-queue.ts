/**
 * `SignInQueue` limits concurrent requests that hash a password. Clients with waiting requests take turns.
 *
 * A client is a known browser or a network. Requests wait before they have any effect, so they can still fail.
 */

interface SignInQueueOptions {
  readonly maxRunning: number;
  readonly maxWaiting?: number;
  readonly maxWaitingPerClient?: number;
}

/** The threads compute 12 to 24 hashes a second, so the last request of a full queue waits five to ten seconds. */
const MAX_WAITING = 128;
const MAX_WAITING_PER_CLIENT = 32;

/**
 * Scope `client`: too many requests of this client wait, or a client with fewer waiting requests displaced this one. Scope `all`: the whole
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
  readonly displace: (error: Error) => void;
}

export class SignInQueue {
  readonly #options: Required<SignInQueueOptions>;
  /** Waiting requests by client. The first client is served next, and then moves to the end. */
  readonly #lineByClient = new Map<string, Waiting[]>();
  #runningCount = 0;
  #waitingCount = 0;

  constructor(options: SignInQueueOptions) {
    this.#options = { maxWaiting: MAX_WAITING, maxWaitingPerClient: MAX_WAITING_PER_CLIENT, ...options };
  }

  get runningCount(): number {
    return this.#runningCount;
  }

  get waitingCount(): number {
    return this.#waitingCount;
  }

  /** Runs a task when its turn comes. Throws {@link SignInQueueFull} if refused or displaced, or the reason of `signal`. */
  async run<T>(client: string, signal: AbortSignal, task: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    if (this.#runningCount < this.#options.maxRunning) this.#runningCount++;
    else await this.#waitForTurn(client, signal);
    try {
      return await task();
    } finally {
      this.#startNext();
    }
  }

  #waitForTurn(client: string, signal: AbortSignal): Promise<void> {
    const { maxWaiting, maxWaitingPerClient } = this.#options;
    const ownLength = this.#lineByClient.get(client)?.length ?? 0;
    if (ownLength >= maxWaitingPerClient) throw new SignInQueueFull('client');
    if (this.#waitingCount >= maxWaiting && !this.#displaceFor(ownLength)) throw new SignInQueueFull('all');
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
        displace: (error) => {
          settle();
          reject(error);
        },
      };
      const line = this.#lineByClient.get(client);
      if (line === undefined) this.#lineByClient.set(client, [waiting]);
      else line.push(waiting);
      this.#waitingCount++;
      signal.addEventListener('abort', leave, { once: true });
    });
  }

  /** Rejects the newest request of the client with the most waiting. False, without a rejection: that client has at most one more. */
  #displaceFor(ownLength: number): boolean {
    let longest: Waiting[] = [];
    for (const line of this.#lineByClient.values()) if (line.length > longest.length) longest = line;
    const newest = longest.at(-1);
    if (newest === undefined || longest.length <= ownLength + 1) return false;
    this.#remove(newest);
    newest.displace(new SignInQueueFull('client'));
    return true;
  }

  #startNext(): void {
    const [entry] = this.#lineByClient;
    const next = entry?.[1][0];
    if (entry === undefined || next === undefined) {
      this.#runningCount--;
      return;
    }
    this.#remove(next);
    const [client, line] = entry;
    if (line.length > 0) {
      this.#lineByClient.delete(client);
      this.#lineByClient.set(client, line);
    }
    next.start();
  }

  #remove(waiting: Waiting): void {
    const line = this.#lineByClient.get(waiting.client);
    const index = line?.indexOf(waiting) ?? -1;
    if (line === undefined || index === -1) return;
    line.splice(index, 1);
    this.#waitingCount--;
    if (line.length === 0) this.#lineByClient.delete(waiting.client);
  }
}
