/** `answerLimits`: sentences on what the verification of an answer does not prove. */
import type { EnclaveEvidence } from '@inference/protocol';

/** Limits that apply to every answer. */
const NOT_PROVED: readonly string[] = [
  'That the named model was used. The machine signs the name; its weights cannot be inspected.',
  'That the key is in the attested Mac: another machine could relay requests to it.',
];

const PLAIN_MODE_LIMIT = 'That nobody read the conversation in the memory of the machine. In plain mode, the coordinator can read it too.';

/** The coordinator cannot read the content in end-to-end mode. */
const END_TO_END_LIMIT = 'That nobody read the conversation in the memory of the machine.';

/** First limit of the list. Key: evidence for the machine's Secure Enclave. */
const NOT_PROVED_OF_ENCLAVE: Readonly<Record<EnclaveEvidence, string | null>> = {
  simulated: 'Anything about hardware: this machine has a simulated enclave, as in development networks. Its key is stored in software.',
  claimed: 'That the machine has a Secure Enclave. The machine claims one, but no Apple certificate confirms the claim.',
  certified: null,
};

/** `enclave` null: the machine was not verified. */
export function answerLimits(enclave: EnclaveEvidence | null, mode: 'plain' | 'end_to_end' = 'plain'): readonly string[] {
  const ofEnclave = enclave === null ? null : NOT_PROVED_OF_ENCLAVE[enclave];
  return [...(ofEnclave === null ? [] : [ofEnclave]), ...NOT_PROVED, mode === 'plain' ? PLAIN_MODE_LIMIT : END_TO_END_LIMIT];
}
