/**
 * Fresh key pairs for the sealing of jobs, some of them made ahead while nothing else has to be done, so that a job does not wait
 * for one. Each is handed out once and then forgotten here (RFC 9180 section 4.1: every encapsulation has a pair of its own).
 */
import { generateSealingKeyPair, type SealingKeyPair } from '@inference/protocol/crypto';

/** Made ahead at most. */
const MOST_WAITING = 16;
/** Between two of them, so that what has come in meanwhile goes first, in milliseconds. */
const PAUSE_MS = 1;

export class EphemeralKeys {
  readonly #waiting: SealingKeyPair[] = [];
  #timer: NodeJS.Timeout | null = null;
  #closed = false;

  constructor() {
    this.#makeMore();
  }

  /** A pair that nobody had before. */
  take(): SealingKeyPair {
    const pair = this.#waiting.pop() ?? generateSealingKeyPair();
    this.#makeMore();
    return pair;
  }

  /** Forgets those that were made ahead, and makes no more of them. */
  close(): void {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#waiting.length = 0;
  }

  #makeMore(): void {
    if (this.#timer !== null || this.#closed || this.#waiting.length >= MOST_WAITING) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#waiting.push(generateSealingKeyPair());
      this.#makeMore();
    }, PAUSE_MS);
    this.#timer.unref();
  }
}
