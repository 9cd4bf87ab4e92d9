/** Reasons for refusing to seal or open. The list is closed: callers switch over the codes. */
export type SealingErrorCode =
  /** A public or encapsulated key that is not 32 bytes or yields the all-zero shared secret. */
  | 'bad_key'
  /** The tag does not verify: another key, another context, or altered bytes; indistinguishable by design. */
  | 'open_failed'
  /** A frame is missing, repeated or out of order. */
  | 'out_of_order'
  /** A frame of the other direction or of another job. */
  | 'wrong_frame'
  /** More bytes than the cap, or than was announced. */
  | 'too_large'
  /** The final frame came before all announced bytes did. */
  | 'size_mismatch'
  /** Something follows the final frame. */
  | 'after_final'
  /** The answer cannot be sealed before the whole request was opened. */
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
