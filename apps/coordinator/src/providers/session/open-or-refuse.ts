/** Opens a statement, or refuses the session with the statement's exact problem. */
import { type OpenedStatement, type RejectionCode, StatementError } from '@inference/protocol';
import { Refusal } from './refusal.js';

const CODES = { attestation: 'attestation_refused', challenge: 'challenge_failed', key: 'key_refused' } as const satisfies Record<
  string,
  RejectionCode
>;

export function openOrRefuse<T>(kind: keyof typeof CODES, opener: () => OpenedStatement<T>): OpenedStatement<T> {
  try {
    return opener();
  } catch (error) {
    if (error instanceof StatementError) throw new Refusal(CODES[kind], error.message, `${kind}_${error.problem}`);
    throw error;
  }
}
