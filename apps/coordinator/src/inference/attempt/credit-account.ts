/** Credit of one provider on one job: what it may still send, and what the client has drained but it was not yet told of. */
import { INITIAL_CREDIT_BYTES } from '@inference/protocol';
import { CLOSING_CREDIT_BYTES, CREDIT_STEP_BYTES } from '../job-timings.js';

export class CreditAccount {
  readonly #tell: (bytes: number) => void;
  #left = INITIAL_CREDIT_BYTES;
  #drained = 0;

  constructor(tell: (bytes: number) => void) {
    this.#tell = tell;
  }

  /** The provider may send nothing before the client has drained more. */
  get isUsedUp(): boolean {
    return this.#left <= 0;
  }

  /** Takes received bytes from the credit. False when the provider sent more than it had. */
  spend(bytes: number): boolean {
    this.#left -= bytes;
    return this.#left >= 0;
  }

  /** The client has gone: what the provider holds for it may come, whatever was drained. */
  lift(): void {
    this.#left += CLOSING_CREDIT_BYTES;
    this.#tell(CLOSING_CREDIT_BYTES);
  }

  /** The client has taken this many bytes. */
  drained(bytes: number): void {
    this.#drained += bytes;
    if (this.#drained < CREDIT_STEP_BYTES) return;
    this.#left += this.#drained;
    this.#tell(this.#drained);
    this.#drained = 0;
  }
}
