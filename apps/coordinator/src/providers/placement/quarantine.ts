/** An operator's quarantine of a provider, which gets no jobs until an operator releases it. */

export interface OperatorQuarantine {
  /** Text by the operator, at most 300 characters. The provider's owner can read it. */
  readonly reason: string;
  /** Milliseconds since 1970. */
  readonly since: number;
}
