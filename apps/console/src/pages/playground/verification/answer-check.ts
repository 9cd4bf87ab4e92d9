/** What came of checking an answer in the browser, as the page shows it. */
import type { EnclaveEvidence } from '@inference/protocol';

export interface CheckLine {
  readonly ok: boolean;
  /** One sentence for people. */
  readonly text: string;
}

export type AnswerCheck =
  /** Nothing to check: no answer, or one that was stopped or broke off. */
  | { readonly state: 'none' }
  | { readonly state: 'checking' }
  | {
      readonly state: 'verified' | 'failed';
      readonly lines: readonly CheckLine[];
      readonly enclave: EnclaveEvidence;
      readonly jobId: string | null;
    }
  /** Nothing was found wrong, but there was nothing to check it against. */
  | { readonly state: 'unknown'; readonly reason: string };

/** What no check in a browser can show, whatever its result. */
export const NOT_PROVED: readonly string[] = [
  'That the model is the one named. The machine says so under its signature; weights cannot be seen from here.',
  'What the memory of the machine held, or that nobody read the conversation there. In standard mode the coordinator sees it, too.',
  'That the key lives in the attested Mac: a key can be relayed by a machine that is not it.',
];

/** The first thing that is not proved, by what supports the machine's Secure Enclave. */
export const NOT_PROVED_OF_ENCLAVE: Readonly<Record<EnclaveEvidence, string | null>> = {
  simulated: 'Anything about hardware: this machine has a simulated enclave, as development networks do. Its key is kept in software.',
  claimed:
    'That the machine has a Secure Enclave. It claims one, but no certificate from its manufacturer confirms that; a program could make the same claim.',
  certified: null,
};
