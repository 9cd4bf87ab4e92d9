/**
 * `PrefillBudget`: how long a round reads waiting prompts while other streams generate.
 *
 * A round takes at most twice the usual time of its decoding, or 30 ms if that is longer, so that running streams do not stall. After
 * a slice that took longer, streams run some rounds without prompts, so that rounds take no longer on average. Pure.
 */

/** Time that a round with waiting prompts may always take, in milliseconds. */
const FREE_ROUND_MS = 30;
/** Maximum time for prompts in a round, in milliseconds, on slow machines too. */
const MAX_MS = 100;
/** Maximum excess that is paid back. A longer one is not the slice's own time, but a machine that was suspended. */
const MAX_EXCESS_MS = 1000;
/** Weight of a new measurement in the usual decoding time. */
const SMOOTHING = 0.2;

export class PrefillBudget {
  /** Usual time to decode a token of all running streams, in milliseconds. 0 until measured. */
  #decodeMs = 0;
  #overdrawnMs = 0;
  /** Time of freely cut slices that later rounds have yet to pay back. */
  #excessMs = 0;

  /** Time for prompts in a round, in milliseconds: 15 to 100. */
  get roundMs(): number {
    return Math.max(FREE_ROUND_MS - this.#decodeMs, Math.min(this.#decodeMs, MAX_MS));
  }

  /** Records the decoding time of a round, in milliseconds. */
  addDecode(ms: number): void {
    this.#decodeMs = this.#decodeMs === 0 ? ms : this.#decodeMs + SMOOTHING * (ms - this.#decodeMs);
  }

  /** Whether prompts that cannot be cut freely must wait, because earlier ones took more time than their rounds had. */
  get isOverdrawn(): boolean {
    return this.#overdrawnMs >= this.roundMs;
  }

  /** Charges time for a prompt that cannot be cut freely: an image, or the fixed slice of a repeatable stream. */
  overdraw(ms: number): void {
    this.#overdrawnMs += ms;
  }

  /** Whether no prompt may be read in this round, because earlier slices took more time than their rounds had. */
  get isExhausted(): boolean {
    return this.#excessMs >= this.roundMs;
  }

  /** Charges time for a freely cut slice of a prompt. */
  charge(ms: number): void {
    this.#excessMs += ms;
  }

  endRound(): void {
    this.#overdrawnMs = Math.max(0, this.#overdrawnMs - this.roundMs);
    this.#excessMs = Math.min(MAX_EXCESS_MS, Math.max(0, this.#excessMs - this.roundMs));
  }

  /** No stream generates, so prompts have delayed nobody. */
  clear(): void {
    this.#overdrawnMs = 0;
    this.#excessMs = 0;
  }
}
