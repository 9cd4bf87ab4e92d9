/** A machine that an operator took out of routing, whatever its trust and its jobs say, until an operator lets it in again. */

export interface OperatorQuarantine {
  /** In the operator's words, at most 300 characters; the owner of the machine reads it. */
  readonly reason: string;
  /** Milliseconds since 1970. */
  readonly since: number;
}
