/** What an outsider can say of one claim in a public record. */

import type { AttestationRecord, EnclaveEvidence } from '@inference/protocol';

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

export function coordinatorClaim(claim: string, value: string | boolean, explanation: string): Finding {
  return { claim, value, result: 'word', explanation };
}

function describe(value: unknown): string {
  return typeof value === 'string' || typeof value === 'boolean' ? JSON.stringify(value) : 'nothing';
}

/** The evidence that the findings on a record leave. The strongest is `certified`; a contradicted chain counts as none. */
export function enclaveEvidenceOf(record: AttestationRecord, findings: readonly Finding[]): EnclaveEvidence {
  const chain = findings.find(({ claim }) => claim === 'mda_verified');
  if (record.simulated || !record.secure_enclave || record.key_protection === 'software') return 'simulated';
  if (chain?.result === 'simulated') return 'simulated';
  const certified = chain?.value === true && chain.result === 'reproduced' && findings.every(({ result }) => result !== 'contradicted');
  return certified ? 'certified' : 'claimed';
}

/** One sentence for people who do not know this network. */
export const ENCLAVE_EVIDENCE_TEXT: Readonly<Record<EnclaveEvidence, string>> = {
  simulated: 'SIMULATED machine: its key is kept in software, or certified by a test authority. Nothing is proved about its hardware.',
  claimed:
    'CLAIMED Secure Enclave: the machine says so of itself. No certificate from its manufacturer confirms it; a program could say the same.',
  certified: "CERTIFIED machine: its manufacturer's certificate chain is bound to this key.",
};
