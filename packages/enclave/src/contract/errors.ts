/** `EnclaveError`, with the codes of a helper's error replies and the client's own codes for failures of the process. */

/** Codes of a helper's error reply. */
export const HELPER_ERROR_CODES = ['bad_request', 'unknown_op', 'no_enclave', 'key_unavailable', 'io', 'internal'] as const;
export type HelperErrorCode = (typeof HELPER_ERROR_CODES)[number];

/**
 * Codes of the client.
 *
 * - `start_failed`: the helper did not start.
 * - `exited`: the helper exited before its answer.
 * - `timeout`: the helper did not answer and was killed, or did not restart in time.
 * - `restarted`: the helper was killed because another request timed out.
 * - `bad_reply`: the helper violated the contract.
 * - `contract_mismatch`: the helper has another contract version.
 * - `key_changed`: a restarted helper has another key. Permanent.
 * - `busy`: too many requests are pending.
 * - `aborted`: the caller's signal aborted.
 * - `closed`: the client was closed.
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
