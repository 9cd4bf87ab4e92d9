/**
 * `PrefillBudget`: how much of the waiting prompts a round reads while other streams generate.
 *
 * A round takes at most twice the usual time of its decoding, or 30 ms if that is longer, so that running streams do not stall. Pure.
 */

/** Time that a round with waiting prompts may always take, in milliseconds. */
const FREE_ROUND_MS = 30;
/** Maximum time for prompts in a round, in milliseconds, on slow machines too. */
const MAX_MS = 100;
/** Smallest prompt slice worth a batch, in tokens. */
export const MIN_SLICE = 16;
/** Weight of a new measurement in the usual decoding time. */
const SMOOTHING = 0.2;

export class PrefillBudget {
  /** Usual time to decode a token of all running streams, in milliseconds. 0 until measured. */
  #decodeMs = 0;
  /** Time per prompt token in the last slice. 0 until measured. */
  #msPerToken = 0;
  #overdrawnMs = 0;

  /** Time for prompts in a round, in milliseconds: 15 to 100. */
  get roundMs(): number {
    return Math.max(FREE_ROUND_MS - this.#decodeMs, Math.min(this.#decodeMs, MAX_MS));
  }

  /** Records the decoding time of a round, in milliseconds. */
  addDecode(ms: number): void {
    this.#decodeMs = this.#decodeMs === 0 ? ms : this.#decodeMs + SMOOTHING * (ms - this.#decodeMs);
  }

  /** Records the time of a prompt slice, in milliseconds. Small slices do not show the time per token. */
  addSlice(tokens: number, ms: number): void {
    if (tokens >= MIN_SLICE) this.#msPerToken = ms / tokens;
  }

  /** Number of prompt tokens that fit into a time, in milliseconds. 0 before the first measurement. */
  tokensIn(ms: number): number {
    return this.#msPerToken === 0 ? 0 : Math.floor(ms / this.#msPerToken);
  }

  /** Whether another slice fits into the rest of a round's time, in milliseconds. */
  hasRoomIn(ms: number): boolean {
    return ms > 0 && ms >= MIN_SLICE * this.#msPerToken;
  }

  /** Whether prompts that cannot be cut freely must wait, because earlier ones took more time than their rounds had. */
  get isOverdrawn(): boolean {
    return this.#overdrawnMs >= this.roundMs;
  }

  /** Charges time for a prompt that cannot be cut freely: an image, or the fixed slice of a repeatable stream. */
  overdraw(ms: number): void {
    this.#overdrawnMs += ms;
  }

  endRound(): void {
    this.#overdrawnMs = Math.max(0, this.#overdrawnMs - this.roundMs);
  }

  /** No stream generates, so prompts have delayed nobody. */
  clear(): void {
    this.#overdrawnMs = 0;
  }
}
