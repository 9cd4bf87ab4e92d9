/**
 * A small stock of ephemeral X25519 keys, made on the thread pool before they are needed: making one takes a quarter of the
 * time of sealing a job. Each is handed out once and never kept.
 */
import { generateSealingKeyPair, generateSealingKeyPairAsync, type SealingKeyPair } from './x25519.js';

export class EphemeralKeys {
  readonly #stock: SealingKeyPair[] = [];
  readonly #size: number;
  #making = 0;

  /** `size`: keys held ready. */
  constructor(size = 64) {
    this.#size = size;
    this.#refill();
  }

  /** A key pair that was handed out to nobody else. Made on the spot when the stock is empty. */
  take(): SealingKeyPair {
    const pair = this.#stock.pop() ?? generateSealingKeyPair();
    this.#refill();
    return pair;
  }

  #refill(): void {
    while (this.#stock.length + this.#making < this.#size) {
      this.#making++;
      generateSealingKeyPairAsync().then(
        (pair) => {
          this.#making--;
          this.#stock.push(pair);
        },
        // The next job makes its own key, and meets the same error where someone hears of it.
        () => {
          this.#making--;
        },
      );
    }
  }
}
