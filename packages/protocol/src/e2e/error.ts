/** Reasons for refusing to seal or open in the end-to-end profile. The list is closed: callers switch over the codes. */
export const E2E_ERROR_CODES = [
  /** Bytes that the profile does not allow: magic, version, context, counts, part kinds, padding. */
  'malformed',
  /** A member of the context is missing, of another type, or contradicts the request. */
  'bad_context',
  /** More bytes, recipients or parts than the profile allows. */
  'too_large',
  /** The ciphertext is too long or too short for the announced `body_bytes`. */
  'size_mismatch',
  /** A public or encapsulated key of another length, or of small order. */
  'bad_key',
  /** The recipient at this index has another key id. */
  'wrong_recipient',
  /** The data key does not open the commitment: the recipients got different keys. */
  'commitment_mismatch',
  /** A tag does not verify: another key, context, candidate or answer, an earlier position, or altered bytes. */
  'open_failed',
  /** The bytes end inside the final frame, or frames before an authentic frame are missing. */
  'truncated',
  /** Bytes follow the final frame. */
  'after_final',
  /** The coordinator ended the answer with an abort frame. */
  'aborted',
  /** The sequence numbers of a key are used up. */
  'exhausted',
] as const;
export type E2eErrorCode = (typeof E2E_ERROR_CODES)[number];

/**
 * Refusal for each error (`docs/e2e-protocol.md`). Only `unsealing_failed` is a provider's refusal.
 *
 * Structural errors of an answer are `coordinator_said`, because no key authenticates structure.
 */
export const E2E_REFUSALS = {
  malformed: 'coordinator_said',
  bad_context: 'unsealing_failed',
  too_large: 'coordinator_said',
  size_mismatch: 'unsealing_failed',
  bad_key: 'key_unbound',
  wrong_recipient: 'unsealing_failed',
  commitment_mismatch: 'unsealing_failed',
  open_failed: 'open_failed',
  truncated: 'truncated',
  after_final: 'coordinator_said',
  aborted: 'coordinator_said',
  exhausted: 'open_failed',
} as const satisfies Record<E2eErrorCode, string>;

export class E2eError extends Error {
  constructor(
    readonly code: E2eErrorCode,
    message: string,
    /** With `bad_context`: member of the context at fault, such as `max_tokens` or `recipients/0/key_id`; null: the whole context. */
    readonly member: string | null = null,
  ) {
    super(message);
    this.name = 'E2eError';
  }
}
