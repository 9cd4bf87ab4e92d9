/** Result of verifying a response in the browser. */
import type { EnclaveEvidence } from '@inference/protocol';
import { api } from '../../../api/api-client.js';
import type { Evidence } from './evaluate-answer.js';

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
  'That the named model was used. The machine signs the name; its weights cannot be inspected.',
  'That nobody read the conversation in the memory of the machine. In plain mode, which this page uses, the coordinator can read it too.',
  'That the key is in the attested Mac: another machine could relay requests to it.',
];

/** Additional first limit, by the evidence for the Secure Enclave of the machine. */
export const NOT_PROVED_OF_ENCLAVE: Readonly<Record<EnclaveEvidence, string | null>> = {
  simulated: 'Anything about hardware: this machine has a simulated enclave, as in development networks. Its key is stored in software.',
  claimed: 'That the machine has a Secure Enclave. The machine claims one, but no Apple certificate confirms the claim.',
  certified: null,
};

/** Current attestation feed; null if the download fails. Never rejects. */
export async function downloadFeed(): Promise<unknown> {
  try {
    return await api.get<unknown>('/v1/providers/attestation');
  } catch {
    return null;
  }
}

/** Never rejects: an exception becomes the state `unknown`. */
export async function checkAnswer(evidence: Omit<Evidence, 'feed'>, feed: Promise<unknown>): Promise<AnswerCheck> {
  try {
    const [{ evaluateAnswer }, downloaded] = await Promise.all([import('./evaluate-answer.js'), feed]);
    return evaluateAnswer({ ...evidence, feed: downloaded }, Date.now());
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { state: 'unknown', reason: `Verification could not run: ${why}` };
  }
}
