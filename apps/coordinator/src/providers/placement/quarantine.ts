/** `OperatorQuarantine` of a provider: reason and start. No jobs until an operator's release. */

export interface OperatorQuarantine {
  /** Written by the operator, at most 300 characters; the owner of the machine can read it. */
  readonly reason: string;
  /** Milliseconds since 1970. */
  readonly since: number;
}
