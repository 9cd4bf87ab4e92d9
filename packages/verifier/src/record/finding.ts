/** `Finding`: result of checking one claim in an attestation record against the record's evidence. */

import type { AttestationRecord, EnclaveEvidence } from '@inference/protocol';

export type FindingResult =
  /** The evidence in the record leads to the same value. */
  | 'reproduced'
  /** Reproduced, but only under an anchor that declares itself simulated. */
  | 'simulated'
  /** The record has no evidence: only the coordinator makes the claim. */
  | 'word'
  /** The evidence leads to another value, or does not verify. */
  | 'contradicted';

export interface Finding {
  /** Name of the record's member. */
  readonly claim: string;
  readonly value: string | boolean;
  readonly result: FindingResult;
  /** For people: the computation, or the missing proof. */
  readonly explanation: string;
}

/** `reproduced` if the evidence gives the claimed value, else `contradicted`. */
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

/** Enclave evidence that the findings support. Any contradicted finding rules out `certified`, the strongest level. */
export function enclaveEvidenceOf(record: AttestationRecord, findings: readonly Finding[]): EnclaveEvidence {
  const chain = findings.find(({ claim }) => claim === 'mda_verified');
  if (record.simulated || !record.secure_enclave || record.key_protection === 'software') return 'simulated';
  if (chain?.result === 'simulated') return 'simulated';
  const certified = chain?.value === true && chain.result === 'reproduced' && findings.every(({ result }) => result !== 'contradicted');
  return certified ? 'certified' : 'claimed';
}

/** A sentence for readers who do not know this network. */
export const ENCLAVE_EVIDENCE_TEXT: Readonly<Record<EnclaveEvidence, string>> = {
  simulated: 'SIMULATED machine: its key is kept in software, or certified by a test authority. Nothing is proved about its hardware.',
  claimed:
    'CLAIMED Secure Enclave: the machine says so of itself. No certificate from its manufacturer confirms it; a program could say the same.',
  certified: "CERTIFIED machine: its manufacturer's certificate chain is bound to this key.",
};
