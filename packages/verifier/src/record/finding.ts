/** What an outsider can say of one claim in a public record. */

export type FindingResult =
  /** The evidence beside it leads to the same value. */
  | 'reproduced'
  /** So it does, but only under an anchor that is a simulation by its own word. */
  | 'simulated'
  /** Nothing in the record shows it: who believes it, believes the coordinator. */
  | 'word'
  /** The evidence leads to another value, or does not verify. */
  | 'contradicted';

export interface Finding {
  /** Name of the record's member. */
  readonly claim: string;
  readonly value: string | boolean;
  readonly result: FindingResult;
  /** One sentence for people: what was computed, or what is not proved. */
  readonly explanation: string;
}

/** `reproduced` when the evidence gives the value that is claimed. */
export function compared(claim: string, value: string | boolean, computed: unknown, how: string): Finding {
  if (computed === value) return { claim, value, result: 'reproduced', explanation: how };
  return { claim, value, result: 'contradicted', explanation: `${how} It gives ${describe(computed)}.` };
}

export function contradicted(claim: string, value: string | boolean, explanation: string): Finding {
  return { claim, value, result: 'contradicted', explanation };
}

export function word(claim: string, value: string | boolean, explanation: string): Finding {
  return { claim, value, result: 'word', explanation };
}

function describe(value: unknown): string {
  return typeof value === 'string' || typeof value === 'boolean' ? JSON.stringify(value) : 'nothing';
}
