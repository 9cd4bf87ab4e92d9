/**
 * Error codes of the helper contract. A helper names one of {@link HELPER_ERROR_CODES} in its reply; the client adds the
 * codes for what can happen to the helper process itself.
 */

/** What a helper may answer instead of a result. */
export const HELPER_ERROR_CODES = ['bad_request', 'unknown_op', 'no_enclave', 'key_unavailable', 'io', 'internal'] as const;
export type HelperErrorCode = (typeof HELPER_ERROR_CODES)[number];

/**
 * Codes of the client.
 * `start_failed`: the helper could not be started; `exited`: it ended before it answered; `timeout`: it did not answer in
 * time and was killed; `restarted`: it was killed because of another request or of rubbish on its output; `bad_reply`: it
 * broke the contract; `contract_mismatch`: it speaks another contract version; `key_changed`: after a restart it has
 * another key, and nothing works any more; `busy`: too many requests wait; `aborted`: the caller's signal; `closed`.
 */
export type EnclaveErrorCode =
  | HelperErrorCode
  | 'start_failed'
  | 'exited'
  | 'timeout'
  | 'restarted'
  | 'bad_reply'
  | 'contract_mismatch'
  | 'key_changed'
  | 'busy'
  | 'aborted'
  | 'closed';

export class EnclaveError extends Error {
  constructor(
    readonly code: EnclaveErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = 'EnclaveError';
  }
}
