/**
 * `PrefillBudget`: how long a round of the decoder reads waiting prompts while other streams generate.
 *
 * A round should take at most twice the usual time of its decoding, or 30 ms if that is longer, so that generating streams do not stall.
 * Prompt slices that took longer are paid back: the next rounds read fewer prompts, so that rounds take no longer on average.
 */

/** Time that a round may always take, decoding and prompts together, in milliseconds. */
const FREE_ROUND_MS = 30;
/** Maximum time for prompts in a round, in milliseconds. */
const MAX_MS = 100;
/** Maximum debt of slices, in milliseconds. A longer time is probably that of a suspended machine. */
const MAX_EXCESS_MS = 1000;
/** Weight of a new measurement in the usual decoding time. */
const SMOOTHING = 0.2;

export class PrefillBudget {
  /** Usual time to decode a token of all running streams, in milliseconds. 0 until measured. */
  #decodeMs = 0;
  /** Time of prompts that cannot be cut, which later rounds have yet to pay back. */
  #overdrawnMs = 0;
  /** Time of cut slices, which later rounds have yet to pay back. */
  #excessMs = 0;

  /** Time for prompts in a round, in milliseconds: 15 to 100. */
  get roundMs(): number {
    return Math.max(FREE_ROUND_MS - this.#decodeMs, Math.min(this.#decodeMs, MAX_MS));
  }

  /** Records the decoding time of a round, in milliseconds. Call before the round reads prompts. */
  addDecode(ms: number): void {
    this.#decodeMs = this.#decodeMs === 0 ? ms : this.#decodeMs + SMOOTHING * (ms - this.#decodeMs);
  }

  /** Whether prompts that cannot be cut must wait, because earlier ones took more time than their rounds had. */
  get isOverdrawn(): boolean {
    return this.#overdrawnMs >= this.roundMs;
  }

  /** Charges time for an image, or for a slice of a repeatable stream: the budget cannot choose their size. */
  overdraw(ms: number): void {
    this.#overdrawnMs += ms;
  }

  /** Whether no prompt may be read in this round, because earlier slices took more time than their rounds had. */
  get isExhausted(): boolean {
    return this.#excessMs >= this.roundMs;
  }

  /** Charges time for a slice whose size was chosen for the budget. */
  charge(ms: number): void {
    this.#excessMs += ms;
  }

  /** Pays back the time of one round. */
  endRound(): void {
    this.#overdrawnMs = Math.max(0, this.#overdrawnMs - this.roundMs);
    this.#excessMs = Math.min(MAX_EXCESS_MS, Math.max(0, this.#excessMs - this.roundMs));
  }

  /** Forgets all debts. Called when no stream generates, so that prompts delay nobody. */
  clear(): void {
    this.#overdrawnMs = 0;
    this.#excessMs = 0;
  }
}
