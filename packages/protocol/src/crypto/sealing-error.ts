/** Errors of sealing and opening in plain mode. The list of codes is closed, so callers can switch over it. */
export type SealingErrorCode =
  /** A key is not 32 bytes, or yields an all-zero shared secret. */
  | 'bad_key'
  /** The tag does not verify: wrong key, wrong context or altered bytes. AEAD does not reveal which. */
  | 'open_failed'
  /** A frame is missing, repeated or out of order. */
  | 'out_of_order'
  /** A frame of the other direction or of another job. */
  | 'wrong_frame'
  /** More bytes than the limit, or than announced. */
  | 'too_large'
  /** The request has fewer bytes than announced. */
  | 'size_mismatch'
  /** A frame follows the final frame. */
  | 'after_final'
  /** The response cannot be sealed before the whole request was opened. */
  | 'incomplete'
  /** The key's sequence numbers are used up. */
  | 'exhausted';

export class SealingError extends Error {
  constructor(
    readonly code: SealingErrorCode,
    message: string,
  ) {
    super(message);
    this.name = 'SealingError';
  }
}
