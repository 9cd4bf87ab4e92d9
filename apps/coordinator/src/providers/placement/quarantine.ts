/** Excludes a provider from routing until an operator releases the quarantine, regardless of trust and reputation. */

export interface OperatorQuarantine {
  /** Written by the operator, at most 300 characters; the owner of the machine can read it. */
  readonly reason: string;
  /** Milliseconds since 1970. */
  readonly since: number;
}
