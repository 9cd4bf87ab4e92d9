/** Result of verifying a response in the browser. */
import type { EnclaveEvidence } from '@inference/protocol';

export interface CheckLine {
  readonly ok: boolean;
  /** One sentence. */
  readonly text: string;
}

export type AnswerCheck =
  /** Nothing to verify: no response, or an incomplete one. */
  | { readonly state: 'none' }
  | { readonly state: 'checking' }
  | {
      readonly state: 'verified' | 'failed';
      readonly lines: readonly CheckLine[];
      readonly enclave: EnclaveEvidence;
      readonly jobId: string | null;
    }
  /** No contradiction was found, but the evidence to verify against is missing. */
  | { readonly state: 'unknown'; readonly reason: string };

/** Limits of verification in a browser, whatever the result. */
export const NOT_PROVED: readonly string[] = [
  'That the model is the one named. The machine says so under its signature; weights cannot be seen from here.',
  'What the memory of the machine held, or that nobody read the conversation there. In standard mode the coordinator sees it, too.',
  'That the key lives in the attested Mac: a key can be relayed by a machine that is not it.',
];

/** Additional first limit, by the evidence for the Secure Enclave of the machine. */
export const NOT_PROVED_OF_ENCLAVE: Readonly<Record<EnclaveEvidence, string | null>> = {
  simulated: 'Anything about hardware: this machine has a simulated enclave, as development networks do. Its key is kept in software.',
  claimed:
    'That the machine has a Secure Enclave. It claims one, but no certificate from its manufacturer confirms that; a program could make the same claim.',
  certified: null,
};
