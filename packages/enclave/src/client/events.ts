/** Events of a running enclave client, for logs. Events contain no keys, signatures or content of prompts. */
import type { EnclaveError } from '../contract/errors.js';
import type { HelperKind } from '../contract/replies.js';

export type EnclaveEvent =
  | { readonly type: 'started'; readonly kind: HelperKind; readonly version: string; readonly pid: number }
  /** A stderr line of the helper, without control characters, at most 512 characters. */
  | { readonly type: 'stderr'; readonly line: string }
  | { readonly type: 'ended'; readonly reason: EnclaveError }
  /** The helper restarts after this many milliseconds. */
  | { readonly type: 'restarting'; readonly attempt: number; readonly delayMs: number }
  /** All calls fail until the owner acts (`key_changed`). */
  | { readonly type: 'failed_closed'; readonly reason: EnclaveError };

export type OnEnclaveEvent = (event: EnclaveEvent) => void;
