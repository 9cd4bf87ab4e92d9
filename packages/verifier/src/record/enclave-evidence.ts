/** What supports the statement that an enclave key is kept in a Secure Enclave. */
import type { AttestationRecord, EnclaveEvidence } from '@inference/protocol';
import type { Finding } from './finding.js';

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
