/** `stayConnected` runs sessions one after another, with backoff and jitter. Delays are longer after rejections that need the owner. */
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
      readonly advice: string;
      readonly retryInMs: number;
    }
  | { readonly type: 'lost'; readonly reason: string; readonly retryInMs: number };

interface StayConnectedOptions extends SessionOptions {
  readonly onEvent: (event: SessionEvent) => void;
  readonly random?: () => number;
  readonly backoff?: Backoff;
  /** Delays after a coordinator shutdown. */
  readonly restart?: Backoff;
  /** Time for `welcome` in a cluster of coordinators. */
  readonly welcome?: Backoff;
}

const BACKOFF: Backoff = { firstMs: 500, maxMs: 30_000 };
/** Delays after a coordinator's shutdown: all providers leave at once, and the coordinator returns soon. */
const RESTART: Backoff = { firstMs: 2_000, maxMs: 8_000 };
/** Maximum first delay in a cluster of coordinators. Others are ready now; jitter spreads the providers that reconnect at once. */
const MAX_TAKEOVER_MS = 500;
/** Maximum time from connecting to `welcome` in a cluster, because frozen coordinators stay silent. Doubled after each failure. */
const WELCOME: Backoff = { firstMs: 2_000, maxMs: 10_000 };
/** First delay after a rejection that needs the owner. */
const REFUSED_MS = 60_000;

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

/** Runs sessions until the signal is aborted. */
export async function stayConnected(options: StayConnectedOptions, signal: AbortSignal): Promise<void> {
  const random = options.random ?? Math.random;
  const backoff = options.backoff ?? BACKOFF;
  let attempt = 0;
  let hasPeers = false;
  while (!signal.aborted) {
    const welcomeTimeout = hasPeers ? { welcomeTimeoutMs: doubledMs(options.welcome ?? WELCOME, attempt) } : {};
    const end = await Session.run({ ...options, ...welcomeTimeout }, signal);
    if (signal.aborted) return;
    attempt = end.registered ? 0 : attempt + 1;
    const refused = end.kind === 'rejected' && ADVICE[end.code] !== null;
    const restart = end.kind === 'rejected' && end.code === 'shutting_down';
    // An attempt that failed before `welcome` does not show whether the coordinator has peers.
    if (end.registered || end.hasPeers) hasPeers = end.hasPeers;
    const pauses = refused
      ? { firstMs: REFUSED_MS, maxMs: 10 * REFUSED_MS }
      : restart && !hasPeers
        ? (options.restart ?? RESTART)
        : backoff;
    // One failed attempt is allowed, because the second coordinator may be unreachable, too.
    const isTakeover = hasPeers && attempt <= 1 && !refused;
    const retryInMs = isTakeover ? Math.round(random() * MAX_TAKEOVER_MS) : backoffMs(pauses, attempt, random());
    options.onEvent(eventOf(end, retryInMs));
    await pause(retryInMs, refused ? undefined : options.wakeDetector, signal);
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

/** Milliseconds before attempt `attempt` (from 0): doubled each time. Jitter takes off up to half. */
export function backoffMs(backoff: Backoff, attempt: number, random: number): number {
  return Math.round(doubledMs(backoff, attempt) * (0.5 + random / 2));
}

function doubledMs({ firstMs, maxMs }: Backoff, attempt: number): number {
  return Math.min(maxMs, firstMs * 2 ** Math.min(attempt, 30));
}
