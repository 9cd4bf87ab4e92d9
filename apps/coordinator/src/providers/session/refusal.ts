/**
 * `Refusal`: error for an invalid statement or an unexpected message of a provider. `ProviderSession` closes the connection, and sends
 * the provider code, message and reason.
 */
import { type OpenedStatement, type RejectionCode, type RejectionReason, StatementError } from '@inference/protocol';

export class Refusal extends Error {
  constructor(
    readonly code: RejectionCode,
    message: string,
    /** Null unless a signed statement was invalid, insufficient or contradicted other facts. */
    readonly reason: RejectionReason | null = null,
  ) {
    super(message);
    this.name = 'Refusal';
  }
}

/** Refusal of a message that the current phase of the session does not permit. */
export function outOfTurn(what: string): Refusal {
  return new Refusal('out_of_turn', `${what} is not expected now`);
}

const CODES = { attestation: 'attestation_refused', challenge: 'challenge_failed', key: 'key_refused' } as const satisfies Record<
  string,
  RejectionCode
>;

/** Opens a signed statement. Throws {@link Refusal} if the statement is malformed or its signature is invalid. */
export function openOrRefuse<T>(kind: keyof typeof CODES, opener: () => OpenedStatement<T>): OpenedStatement<T> {
  try {
    return opener();
  } catch (error) {
    if (error instanceof StatementError) throw new Refusal(CODES[kind], error.message, `${kind}_${error.problem}`);
    throw error;
  }
}
