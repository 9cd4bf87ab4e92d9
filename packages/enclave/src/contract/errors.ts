/** `EnclaveError`, with the codes of a helper's error replies and the client's own codes for failures of the process. */

/** Codes of a helper's error reply. */
export const HELPER_ERROR_CODES = ['bad_request', 'unknown_op', 'no_enclave', 'key_unavailable', 'io', 'internal'] as const;
export type HelperErrorCode = (typeof HELPER_ERROR_CODES)[number];

/**
 * Codes of the client. The caller's own signal causes `aborted`, closing the client `closed`.
 *
 * - `start_failed`: the helper did not start. `exited`: the helper exited before its answer.
 * - `timeout`: no answer in time; the helper was killed.
 * - `restarted`: the helper was killed because of another request or invalid output.
 * - `bad_reply`: contract violation. `contract_mismatch`: another contract version.
 * - `key_changed`: another key after a restart; permanent. `busy`: too many pending requests.
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
