/**
 * What the end of a session says against a provider that had jobs: a lost connection is a failure, and a broken protocol is more. However
 * many jobs went with it, it counts once.
 */
import type { RejectionCode } from '@inference/protocol';
import type { Fault } from '../reputation/reputation.js';
import type { SessionEnd } from './session-options.js';

/** Rejections of what no honest program sends. */
const BROKEN_PROTOCOL: ReadonlySet<RejectionCode> = new Set(['bad_message', 'out_of_turn', 'too_large', 'misbehaved']);

/** Null: it is nobody's fault. `detail`: the exact problem, a code. */
export function faultOf(end: SessionEnd, draining: boolean): { readonly fault: Fault; readonly detail: string } | null {
  if (end.by === 'provider') return draining ? null : { fault: 'lost', detail: 'connection_lost' };
  if (BROKEN_PROTOCOL.has(end.code)) return { fault: 'misbehaved', detail: end.code };
  return end.code === 'too_slow' ? { fault: 'lost', detail: end.code } : null;
}
