/** A machine that an operator took out of routing, whatever its trust and its jobs say, until an operator lets it in again. */

/** Most characters of the reason, so that the sentence around it fits into what a provider is told. */
export const MAX_HOLD_REASON = 300;

export interface Hold {
  /** In the operator's words; the owner of the machine reads it. */
  readonly reason: string;
  /** Milliseconds since 1970. */
  readonly since: number;
}
