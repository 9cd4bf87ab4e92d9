/** `checkAnswer`: verifies a response of the playground in the browser. The verification code is loaded on demand. */
import type { EnclaveEvidence } from '@inference/protocol';
import { api } from '../../../api/api-client.js';
import type { CheckLine } from '../../../features/trust/check-line.js';
import type { TokenUsage } from '../chat/conversation.js';
import type { Evidence } from './evaluate-answer.js';

export type AnswerCheck =
  /** No result: the response is missing or incomplete, or its result was not stored. */
  | { readonly state: 'none' }
  | { readonly state: 'checking' }
  | {
      readonly state: 'verified' | 'failed';
      readonly lines: readonly CheckLine[];
      /** Evidence for the machine's Secure Enclave. Not used for failed checks. */
      readonly enclave: EnclaveEvidence;
      readonly jobId: string | null;
      /** Null unless its signature is valid. */
      readonly receipt: ReceiptFacts | null;
    }
  /** Evidence is missing, so the response was neither verified nor contradicted. */
  | { readonly state: 'unknown'; readonly reason: string };

export interface ReceiptFacts {
  readonly model: string;
  readonly usage: TokenUsage;
  /** Milliseconds since 1970. */
  readonly completedAt: number;
}

/** Current attestation feed; null if the download fails. Never rejects. */
export async function downloadFeed(): Promise<unknown> {
  try {
    return await api.get<unknown>('/v1/providers/attestation');
  } catch {
    return null;
  }
}

/** Resolves to the result. Never rejects: after an exception, the state is `unknown`. */
export async function checkAnswer(evidence: Omit<Evidence, 'feed'>, feed: Promise<unknown>): Promise<AnswerCheck> {
  try {
    const [{ evaluateAnswer }, downloaded] = await Promise.all([import('./evaluate-answer.js'), feed]);
    return evaluateAnswer({ ...evidence, feed: downloaded }, Date.now());
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { state: 'unknown', reason: `Verification could not run: ${why}` };
  }
}
