/** What a running enclave client tells its owner, for logs. No event holds a key, a signature or anything of a prompt. */
import type { EnclaveError } from '../contract/errors.js';
import type { HelperKind } from '../contract/replies.js';

export type EnclaveEvent =
  | { readonly type: 'started'; readonly kind: HelperKind; readonly version: string; readonly pid: number }
  /** One line of the helper's stderr, control characters removed, cut to 512 characters. */
  | { readonly type: 'stderr'; readonly line: string }
  | { readonly type: 'ended'; readonly reason: EnclaveError }
  /** The helper is started again after this many milliseconds. */
  | { readonly type: 'restarting'; readonly attempt: number; readonly delayMs: number }
  /** Nothing works any more until the owner acts (`key_changed`). */
  | { readonly type: 'failed_closed'; readonly reason: EnclaveError };

export type OnEnclaveEvent = (event: EnclaveEvent) => void;
