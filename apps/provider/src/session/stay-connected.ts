/** `stayConnected` runs sessions with the coordinator one after another until aborted. The pause between them depends on how the last one ended. */
import { setTimeout as delay } from 'node:timers/promises';
import type { RejectionCode } from '@inference/protocol';
import { Session, type SessionEnd, type SessionOptions } from './session.js';

export type SessionEvent =
  | {
      readonly type: 'rejected';
      readonly code: RejectionCode;
      /** Detailed reason, if the coordinator gives one. */
      readonly reason: string | null;
      readonly message: string;
      /** Sentence for the owner; empty if waiting suffices. */
      readonly advice: string;
      readonly retryInMs: number;
    }
  | { readonly type: 'lost'; readonly reason: string; readonly retryInMs: number };

/** Tests replace the source of randomness and the delays. */
interface StayConnectedOptions extends SessionOptions {
  readonly onEvent: (event: SessionEvent) => void;
  readonly random?: () => number;
  readonly backoff?: Backoff;
  readonly restart?: Backoff;
  readonly welcome?: Backoff;
}

/** Delays after a lost or failed connection. */
const BACKOFF: Backoff = { firstMs: 500, maxMs: 30_000 };
/** Delays after the shutdown of a single coordinator, which all providers lose at once. */
const RESTART: Backoff = { firstMs: 2_000, maxMs: 8_000 };
/** Maximum delay before connecting to another coordinator of a cluster. */
const MAX_TAKEOVER_MS = 500;
/** Maximum time to `welcome` in a cluster, where another coordinator may answer sooner. Doubled after each failure. */
const WELCOME: Backoff = { firstMs: 2_000, maxMs: 10_000 };
/** Delays after a rejection that needs the owner. */
const OWNER_NEEDED: Backoff = { firstMs: 60_000, maxMs: 600_000 };

/** Advice for the owner per rejection; null if waiting suffices. */
const ADVICE: Readonly<Record<RejectionCode, string | null>> = {
  version_unsupported: 'Update this program: no common protocol version with the coordinator.',
  attestation_refused: "The coordinator rejected the enclave's attestation.",
  challenge_failed: 'The enclave answered late or incorrectly. Check the clock of this machine.',
  posture_insufficient: 'Turn on System Integrity Protection and full secure boot, then start again.',
  simulated_enclave_refused: 'This coordinator accepts no simulated enclaves. Use a Mac with its enclave helper.',
  key_refused: 'The coordinator rejected the sealing key. Check the clock of this machine.',
  replaced: 'The same identity connected from elsewhere. Run one provider per data directory.',
  misbehaved: 'The coordinator found invalid answers of this provider and stopped its placements.',
  bad_message: 'The coordinator could not read a message. Update this program.',
  out_of_turn: 'The coordinator received an unexpected message. Update this program.',
  too_large: 'The coordinator received a message over its limits. Update this program.',
  too_slow: null,
  shutting_down: null,
};

export async function stayConnected(options: StayConnectedOptions, signal: AbortSignal): Promise<void> {
  const random = options.random ?? Math.random;
  const backoff = options.backoff ?? BACKOFF;
  /** Sessions since the last registered one, which all ended before registration. */
  let failureCount = 0;
  let hasPeers = false;
  while (!signal.aborted) {
    const welcomeTimeout = hasPeers ? { welcomeTimeoutMs: doubledMs(options.welcome ?? WELCOME, failureCount) } : {};
    const end = await Session.run({ ...options, ...welcomeTimeout }, signal);
    if (signal.aborted) return;
    failureCount = end.registered ? 0 : failureCount + 1;
    const needsOwner = end.kind === 'rejected' && ADVICE[end.code] !== null;
    const isShuttingDown = end.kind === 'rejected' && end.code === 'shutting_down';
    // A session that failed before `welcome` does not show whether the coordinator has peers.
    if (end.registered || end.hasPeers) hasPeers = end.hasPeers;
    const delays = needsOwner ? OWNER_NEEDED : isShuttingDown && !hasPeers ? (options.restart ?? RESTART) : backoff;
    // After one failure still without backoff: the second coordinator of the cluster may be unreachable, too.
    const isTakeover = hasPeers && failureCount <= 1 && !needsOwner;
    const retryInMs = isTakeover ? Math.round(random() * MAX_TAKEOVER_MS) : backoffMs(delays, failureCount, random());
    options.onEvent(eventOf(end, retryInMs));
    await pause(retryInMs, needsOwner ? undefined : options.wakeDetector, signal);
  }
}

/** Waits. Ends early on abort, and when this machine wakes, because the network may be back. */
async function pause(ms: number, wakeDetector: SessionOptions['wakeDetector'], signal: AbortSignal): Promise<void> {
  const woken = new AbortController();
  const unsubscribe = wakeDetector?.on(() => woken.abort());
  await delay(ms, undefined, { signal: AbortSignal.any([signal, woken.signal]) }).catch(() => {});
  unsubscribe?.();
}

function eventOf(end: SessionEnd, retryInMs: number): SessionEvent {
  if (end.kind === 'lost') return { type: 'lost', reason: end.reason, retryInMs };
  return { type: 'rejected', code: end.code, reason: end.reason, message: end.message, advice: ADVICE[end.code] ?? '', retryInMs };
}

export interface Backoff {
  readonly firstMs: number;
  readonly maxMs: number;
}

/** Delay after a number of failures: doubled with each, less a jitter of up to half. `random` is from 0 to 1. */
export function backoffMs(backoff: Backoff, failureCount: number, random: number): number {
  return Math.round(doubledMs(backoff, failureCount) * (0.5 + random / 2));
}

function doubledMs({ firstMs, maxMs }: Backoff, failureCount: number): number {
  return Math.min(maxMs, firstMs * 2 ** Math.min(failureCount, 30));
}
