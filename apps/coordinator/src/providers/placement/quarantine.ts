/**
 * An operator's quarantine of a provider: reason and start. A quarantined provider gets no jobs until an operator releases it,
 * regardless of trust and reputation.
 */

export interface OperatorQuarantine {
  /** Written by the operator, at most 300 characters; the owner of the machine can read it. */
  readonly reason: string;
  /** Milliseconds since 1970. */
  readonly since: number;
}
