/** Errors of sealing and opening in the end-to-end mode. The list of codes is closed, so callers can switch over it. */
export const E2E_ERROR_CODES = [
  /** The bytes violate the format: magic, version, context, counts, part kinds or padding. */
  'malformed',
  /** A member of the context is missing, has the wrong type, or contradicts the request. */
  'bad_context',
  /** More bytes, recipients or parts than the format allows. */
  'too_large',
  /** The ciphertext is too long or too short for the announced `body_bytes`. */
  'size_mismatch',
  /** A public or encapsulated key has the wrong length or small order. */
  'bad_key',
  /** The recipient at the given index has a different key id. */
  'wrong_recipient',
  /** The data key does not match the key commitment, so recipients may have got different keys. */
  'commitment_mismatch',
  /** A tag does not verify: wrong key, context, candidate or answer, a repeated frame, or altered bytes. */
  'open_failed',
  /** The bytes end before the end of the final frame, or frames in between are missing. */
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
 * Refusal code for each error (`docs/e2e-protocol.md`). `unsealing_failed` is a provider's refusal; the others are the client's.
 *
 * Structural errors of an answer map to `coordinator_said`: no key authenticates structure, so the coordinator can cause them.
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
    /** For `bad_context`: the invalid member, such as `max_tokens` or `recipients/0/key_id`; null: the context as a whole. */
    readonly member: string | null = null,
  ) {
    super(message);
    this.name = 'E2eError';
  }
}
