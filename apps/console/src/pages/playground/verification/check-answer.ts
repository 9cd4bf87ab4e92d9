/** Verifies responses in the background. The feed is fetched when a response starts, the verifier with the first response. */
import { api } from '../../../api/api-client.js';
import type { AnswerCheck } from './answer-check.js';
import type { Evidence } from './evaluate-answer.js';

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
