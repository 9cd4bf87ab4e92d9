/** `decide`: whether `CommandWorker` sends a device one kind of device-management command now, or until when it waits. Pure. */
import type { CommandKind } from './commands.js';

/** Times in milliseconds. */
export interface ScheduleRules {
  /** Interval of `security_info` queries, which report protections such as SIP and secure boot. */
  readonly securityIntervalMs: number;
  /** Time after which an unanswered command has failed. */
  readonly commandLifetimeMs: number;
  /** Age at which the attestation certificate is renewed: about the interval at which Apple issues new ones. */
  readonly attestationRenewMs: number;
  /**
   * Minimum pause between `device_information` queries: after a cached attestation, which contains an old nonce, and after a success that
   * brought no current certificate.
   */
  readonly staleRetryMs: number;
  /** Pause after the first failure. Doubles with each consecutive failure. */
  readonly firstRetryMs: number;
  readonly maxRetryMs: number;
  /** Number of consecutive failures after which a device pauses for {@link giveUpMs}. */
  readonly giveUpAfter: number;
  readonly giveUpMs: number;
  /** Minimum time from one command to the next of the same kind, for example if the device reconnects often. */
  readonly minPauseMs: number;
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export const SCHEDULE_RULES: ScheduleRules = {
  securityIntervalMs: HOUR,
  commandLifetimeMs: 10 * MINUTE,
  attestationRenewMs: 7 * DAY,
  staleRetryMs: 12 * HOUR,
  firstRetryMs: MINUTE,
  maxRetryMs: 2 * HOUR,
  giveUpAfter: 8,
  giveUpMs: DAY,
  minPauseMs: MINUTE,
};

/** Outcome of a command. `taken`: the answer was accepted. All others are failures. */
export type CommandOutcome =
  | 'taken'
  | 'unanswered'
  /** The management server did not accept the command. */
  | 'not_sent'
  | 'device_error'
  /** The device returned a cached attestation, which contains another nonce. */
  | 'stale_attestation'
  | 'no_attestation'
  | 'refused';

/** A command sent earlier. Pending if `outcome` is null and it has not expired. */
export interface PastCommand {
  readonly uuid: string;
  readonly sentAt: number;
  readonly expiresAt: number;
  readonly endedAt: number | null;
  /** A {@link CommandOutcome}, or text that another version stored. */
  readonly outcome: string | null;
}

/** Facts about one device for a decision about one kind of command. */
export interface DeviceNeeds {
  readonly kind: CommandKind;
  /** Commands of this kind to this device, newest first. */
  readonly history: readonly PastCommand[];
  /** When the current attestation certificate was issued; null: none. Unused for `security_info`. */
  readonly certifiedAt: number | null;
  /** When the provider on the device last connected, so that older answers may be outdated; null: never. */
  readonly reconnectedAt: number | null;
}

export type Decision =
  | { readonly act: 'send'; readonly reason: SendReason }
  | { readonly act: 'wait'; readonly until: number; readonly reason: WaitReason };

type SendReason =
  | 'first'
  | 'due'
  /** The device has reconnected since the last command. */
  | 'doubted'
  | 'retry'
  | 'renew';
type WaitReason =
  | 'awaiting_answer'
  | 'fresh'
  | 'certificate_young'
  /** Waits for the end of `minPauseMs`. */
  | 'just_asked'
  | 'stale_attestation'
  | 'failed_before'
  /** Too many consecutive failures. {@link lastFailure} returns the last one. */
  | 'given_up';

/** Decides for one device and kind of command. `now`: milliseconds since 1970. */
export function decide(needs: DeviceNeeds, now: number, rules: ScheduleRules): Decision {
  const { history } = needs;
  const last = history[0];
  if (last === undefined) return { act: 'send', reason: 'first' };
  if (isPending(last, now)) return { act: 'wait', until: last.expiresAt, reason: 'awaiting_answer' };
  const due = whenDue(needs, last, rules);
  const until = Math.max(due.at, last.sentAt + rules.minPauseMs);
  if (now >= until) return { act: 'send', reason: due.send };
  return { act: 'wait', until, reason: due.at > last.sentAt + rules.minPauseMs ? due.wait : 'just_asked' };
}

interface Due {
  readonly at: number;
  readonly send: SendReason;
  readonly wait: WaitReason;
}

/** Returns when the next command is due if the last one is not pending. Ignores `minPauseMs`. */
function whenDue(needs: DeviceNeeds, last: PastCommand, rules: ScheduleRules): Due {
  const endedAt = last.endedAt ?? last.expiresAt;
  // Infinity: older commands that are still pending count as failed, so that the pause does not change when they expire.
  const failures = failuresInARow(needs.history, Number.POSITIVE_INFINITY);
  if (failures > 0) return whenToRetry(failures, last, endedAt, rules);
  if (needs.reconnectedAt !== null && needs.reconnectedAt > last.sentAt) return { at: needs.reconnectedAt, send: 'doubted', wait: 'fresh' };
  switch (needs.kind) {
    case 'security_info':
      return { at: last.sentAt + withJitter(rules.securityIntervalMs, last.uuid), send: 'due', wait: 'fresh' };
    case 'device_information': {
      if (needs.certifiedAt === null)
        return { at: endedAt + withJitter(rules.staleRetryMs, last.uuid), send: 'retry', wait: 'stale_attestation' };
      // A device may return its cached certificate for a while after a week, so later queries pause for `staleRetryMs`.
      const renewal = Math.max(needs.certifiedAt + rules.attestationRenewMs, endedAt + rules.staleRetryMs);
      return { at: renewal + jitter(rules.staleRetryMs, last.uuid), send: 'renew', wait: 'certificate_young' };
    }
  }
}

function whenToRetry(failures: number, last: PastCommand, endedAt: number, rules: ScheduleRules): Due {
  if (last.outcome === 'stale_attestation') {
    return { at: endedAt + withJitter(rules.staleRetryMs, last.uuid), send: 'retry', wait: 'stale_attestation' };
  }
  if (failures >= rules.giveUpAfter) return { at: endedAt + withJitter(rules.giveUpMs, last.uuid), send: 'retry', wait: 'given_up' };
  const pause = Math.min(rules.maxRetryMs, rules.firstRetryMs * 2 ** (failures - 1));
  return { at: endedAt + withJitter(pause, last.uuid), send: 'retry', wait: 'failed_before' };
}

/** Counts the commands since the last success, including expired ones. A pending command has not failed. */
export function failuresInARow(history: readonly PastCommand[], now: number): number {
  const ended = endedCommands(history, now);
  const success = ended.findIndex((command) => command.outcome === 'taken');
  return success === -1 ? ended.length : success;
}

/** Returns the outcome of the newest command that is not pending; null: none, or a success. An expired command is `unanswered`. */
export function lastFailure(history: readonly PastCommand[], now: number): string | null {
  const [last] = endedCommands(history, now);
  if (last === undefined || last.outcome === 'taken') return null;
  return last.outcome ?? 'unanswered';
}

/** Commands that are not pending, newest first. Several may be pending, for example if two coordinators sent one each. */
function endedCommands(history: readonly PastCommand[], now: number): readonly PastCommand[] {
  return history.filter((command) => !isPending(command, now));
}

function isPending({ outcome, expiresAt }: PastCommand, now: number): boolean {
  return outcome === null && now < expiresAt;
}

function withJitter(pauseMs: number, uuid: string): number {
  return pauseMs + jitter(pauseMs, uuid);
}

/** Returns up to a fifth of a pause, to spread the devices. Derived from the last command's id, so that decisions are reproducible. */
function jitter(pauseMs: number, uuid: string): number {
  let hash = 0;
  for (let i = 0; i < uuid.length; i++) hash = Math.imul(hash ^ uuid.charCodeAt(i), 0x9e3779b1);
  hash = (hash ^ (hash >>> 15)) >>> 0;
  return Math.round(pauseMs * (hash / 2 ** 32) * 0.2);
}
